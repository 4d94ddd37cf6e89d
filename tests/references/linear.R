# Generalised linear models of glm, nnet and brglm2:
#   DECIBAN_DATA=... Rscript linear.R DIRECTORY

source("shared.R")
library(MASS)
suppressMessages(library(nnet))
suppressMessages(library(brglm2))

# Text as unordered factors, levels sorted, so that the first is the reference.
texts <- function(data) {
  text <- vapply(data, function(column) is.factor(column) || is.character(column), NA)
  data[text] <- lapply(data[text], function(column) factor(as.character(column)))
  data
}

# A missing number is the mean of the others, with a column that says where;
# a missing text is a level of its own, the last.
fill <- function(data) {
  filled <- list()
  for (name in names(data)) {
    column <- data[[name]]
    missing <- is.na(column)
    if (is.factor(column)) {
      if (any(missing)) column <- addNA(column)
      levels(column)[is.na(levels(column))] <- "missing"
      filled[[name]] <- column
    } else {
      filled[[name]] <- replace(column, missing, mean(column, na.rm = TRUE))
      if (any(missing)) filled[[paste(name, "missing")]] <- as.numeric(missing)
    }
  }
  data.frame(filled, check.names = FALSE)
}

outside <- function(name) {
  file <- file.path(Sys.getenv("DECIBAN_DATA"), "tables", paste0(name, ".csv"))
  fill(texts(read.csv(file, check.names = FALSE, na.strings = "")))
}

# The column and, for text, the level of each coefficient.
terms_of <- function(matrix, formula) {
  labels <- c("(Intercept)", attr(formula, "term.labels"))[attr(matrix, "assign") + 1]
  text <- labels %in% names(attr(matrix, "contrasts"))
  level <- ifelse(text, substring(colnames(matrix), nchar(labels) + 1), "")
  cbind(gsub("`", "", labels), level)
}

one_line <- function(call) paste(trimws(deparse(call, 500)), collapse = " ")

committed <- function(data) lapply(data, function(x) if (is.factor(x)) as.character(x) else x)

entry <- function(fit, call, ...) {
  stopifnot(fit$converged)
  table <- coef(summary(fit, ...))
  list(
    call = I(one_line(call)),
    observations = I(nobs(fit)),
    names = gsub("`", "", rownames(table)),
    terms = terms_of(model.matrix(fit), terms(fit)),
    coefficients = table[, 1],
    standard_errors = table[, 2],
    statistics = table[, 3],
    p_values = table[, 4],
    dispersion = I(summary(fit, ...)$dispersion),
    deviance = I(fit$deviance),
    null_deviance = I(fit$null.deviance),
    log_likelihood = I(as.vector(logLik(fit))),
    aic = I(AIC(fit)),
    residual_df = I(fit$df.residual),
    null_df = I(fit$df.null)
  )
}

# The standard errors of glm are those of the coefficients before its last step:
# one more step, from where it ended, makes them those of the optimum.
glm_entry <- function(formula, family, data) {
  call <- bquote(glm(.(substitute(formula)), .(substitute(family)), .(substitute(data)),
                     control = list(epsilon = 1e-14, maxit = 100)))
  fit <- eval(call, parent.frame())
  fit <- update(fit, start = coef(fit))
  switch(fit$family$family,
    binomial = c(entry(fit, call), list(classes = levels(fit$model[[1]]))),
    Gamma = exponential(fit, entry(fit, call, dispersion = 1)),
    entry(fit, call)
  )
}

# The exponential density is the Gamma of dispersion 1, which logLik() does
# not know: it takes the dispersion from the deviance.
exponential <- function(fit, result) {
  stopifnot(fit$linear.predictors > 0)
  likelihood <- sum(dexp(fit$y, fit$linear.predictors, log = TRUE))
  result$log_likelihood <- I(likelihood)
  result$aic <- I(2 * length(coef(fit)) - 2 * likelihood)
  result
}

# Coefficients (classes but the first, columns) of the multinomial logit, with
# its score and its information; the columns of a class stay together.
multinomial_at <- function(beta, x, indicator, weights) {
  eta <- cbind(0, x %*% t(beta))
  log_p <- eta - apply(eta, 1, max)
  log_p <- log_p - log(rowSums(exp(log_p)))
  p <- exp(log_p)[, -1, drop = FALSE]
  d <- ncol(x)
  information <- matrix(0, length(beta), length(beta))
  for (a in seq_len(ncol(p))) for (b in seq_len(ncol(p))) {
    w <- weights * p[, a] * ((a == b) - p[, b])
    information[(a - 1) * d + 1:d, (b - 1) * d + 1:d] <- crossprod(x, w * x)
  }
  list(score = as.vector(crossprod(x, weights * (indicator[, -1] - p))),
       information = information,
       log_likelihood = sum(weights * indicator * log_p))
}

multinomial_result <- function(call, beta, x, y, weights, formula, added = 0) {
  indicator <- outer(as.vector(y), levels(y), "==") + 0
  at <- multinomial_at(beta, x, indicator, weights)
  error <- matrix(sqrt(diag(solve(at$information))), nrow(beta), byrow = TRUE)
  z <- unname(beta) / error
  counts <- colSums(weights * indicator)
  share <- (counts + added) / sum(counts + added)
  list(
    call = I(one_line(call)),
    observations = I(sum(weights)),
    classes = levels(y),
    names = gsub("`", "", colnames(x)),
    terms = terms_of(x, formula),
    coefficients = unname(beta),
    standard_errors = error,
    statistics = z,
    p_values = 2 * pnorm(-abs(z)),
    deviance = I(-2 * at$log_likelihood),
    null_deviance = I(-2 * sum(counts * log(share))),
    log_likelihood = I(at$log_likelihood),
    aic = I(2 * length(beta) - 2 * at$log_likelihood),
    residual_df = I(nrow(beta) * sum(weights) - length(beta)),
    null_df = I(nrow(beta) * sum(weights) - nrow(beta))
  )
}

# multinom() stops some digits short: steps of Newton go on from there, and
# must not go far.
multinomial_entry <- function(formula, data, weights) {
  call <- bquote(multinom(.(substitute(formula)), .(substitute(data)), Hess = TRUE, trace = FALSE,
                          maxit = 5000, reltol = 1e-15, abstol = 1e-15))
  if (!missing(weights)) call$weights <- substitute(weights)
  fit <- eval(call, parent.frame())
  stopifnot(fit$convergence == 0)
  frame <- model.frame(fit)
  x <- model.matrix(terms(fit), frame)
  y <- model.response(frame)
  w <- as.vector(fit$weights)
  stopifnot(length(w) == nrow(x))
  beta <- matrix(coef(fit), nlevels(y) - 1)
  start <- beta
  indicator <- outer(as.vector(y), levels(y), "==") + 0
  for (step in 1:5) {
    at <- multinomial_at(beta, x, indicator, w)
    move <- solve(at$information, at$score)
    beta <- beta + matrix(move, nrow(beta), byrow = TRUE)
  }
  result <- multinomial_result(call, beta, x, y, w, terms(fit))
  stopifnot(abs(move) < 1e-10 * as.vector(t(result$standard_errors)),
            abs(beta - start) < 1e-5 * result$standard_errors,
            abs(summary(fit)$standard.errors / result$standard_errors - 1) < 1e-3,
            abs(AIC(fit) - result$aic) < 1e-6)
  result
}

# Firth: the likelihood times the root of the determinant of the information.
# Deviances are without that factor, at the coefficients that maximise with it;
# with no columns these are the log odds of the counts plus a half.
firth_entry <- function(formula, data) {
  call <- bquote(glm(.(substitute(formula)), binomial, .(substitute(data)), method = "brglmFit",
                     type = "AS_mean", epsilon = 1e-12, maxit = 10000))
  fit <- eval(call, parent.frame())
  result <- c(entry(fit, call), list(classes = levels(fit$model[[1]])))
  x <- model.matrix(fit)
  p <- fitted(fit)
  half <- determinant(crossprod(x, p * (1 - p) * x))$modulus / 2
  result$penalised_log_likelihood <- I(result$log_likelihood + as.vector(half))
  result
}

firth_multinomial_entry <- function(formula, data) {
  call <- bquote(brmultinom(.(substitute(formula)), .(substitute(data)), type = "AS_mean",
                            epsilon = 1e-12, maxit = 10000))
  fit <- eval(call, parent.frame())
  stopifnot(fit$converged)
  frame <- model.frame(terms(fit), data)
  x <- model.matrix(terms(fit), frame)
  y <- model.response(frame)
  beta <- matrix(coef(fit), nlevels(y) - 1)
  result <- multinomial_result(call, beta, x, y, rep(1, nrow(x)), terms(fit), added = 1 / 2)
  indicator <- outer(as.vector(y), levels(y), "==") + 0
  half <- determinant(multinomial_at(beta, x, indicator, 1)$information)$modulus / 2
  result$penalised_log_likelihood <- I(result$log_likelihood + as.vector(half))
  stopifnot(abs(summary(fit)$standard.errors / result$standard_errors - 1) < 1e-9,
            abs(logLik(fit) - result$log_likelihood) < 1e-9)
  result
}

iris <- texts(read_table("iris"))
iris$setosa <- factor(ifelse(iris$class == "setosa", "setosa", "other"))
wine <- texts(read_table("wine"))
breast_cancer <- texts(read_table("breast_cancer"))
diabetes <- read_table("diabetes")
credit_g <- outside("credit_g")
heart_c <- outside("heart_c")
pima <- texts(Pima.tr[c("glu", "bmi", "type")])
insurance <- texts(Insurance)
quine <- texts(quine)
leuk <- texts(data.frame(ag = leuk$ag, "log10 wbc" = log10(leuk$wbc), time = leuk$time,
                         check.names = FALSE))
airquality <- na.omit(airquality[c("Temp", "Wind", "Ozone")])
housing <- texts(housing)

write_json(
  list(
    versions = versions(c("MASS", "nnet", "brglm2")),
    data = lapply(list(pima = pima, insurance = insurance, quine = quine, leuk = leuk,
                       airquality = airquality, housing = housing), committed),
    binomial = list(
      breast_cancer = glm_entry(class ~ `mean texture` + `mean smoothness` + `mean symmetry`,
                                binomial, breast_cancer),
      pima = glm_entry(type ~ glu + bmi, binomial, pima),
      credit_g = glm_entry(class ~ checking_status + duration + purpose + credit_amount + age,
                           binomial, credit_g),
      credit_g_all = glm_entry(class ~ ., binomial, credit_g),
      heart_c = glm_entry(num ~ ., binomial, heart_c)
    ),
    poisson = list(
      insurance = glm_entry(Claims ~ District + Group + Age + offset(log(Holders)), poisson, insurance),
      quine = glm_entry(Days ~ Eth + Sex + Age + Lrn, poisson, quine)
    ),
    gaussian = list(diabetes = glm_entry(target ~ ., gaussian, diabetes)),
    exponential = list(
      leuk = glm_entry(time ~ ag + `log10 wbc`, Gamma("inverse"), leuk),
      airquality = glm_entry(Ozone ~ Temp + Wind, Gamma("inverse"), airquality)
    ),
    multinomial = list(
      iris = multinomial_entry(class ~ `sepal length (cm)`, iris),
      wine = multinomial_entry(class ~ alcohol + malic_acid, wine),
      housing = multinomial_entry(Sat ~ Infl + Type + Cont, housing, weights = Freq)
    ),
    firth = list(
      setosa = firth_entry(setosa ~ `sepal length (cm)` + `sepal width (cm)`, iris),
      pima = firth_entry(type ~ glu + bmi, pima)
    ),
    firth_multinomial = list(
      iris = firth_multinomial_entry(class ~ `sepal length (cm)` + `sepal width (cm)`, iris),
      wine = firth_multinomial_entry(class ~ alcohol + malic_acid, wine)
    )
  ),
  "linear.json"
)
