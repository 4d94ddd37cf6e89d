# Posteriors of e1071::naiveBayes: Rscript naive_bayes.R DIRECTORY

source("shared.R")
library(e1071)

# predict() replaces by `threshold` each density that is <= eps (0), and each
# standard deviation that is: here none is, so the densities stay as they are.
iris_posterior <- function() {
  data <- read_data("iris")
  model <- naiveBayes(data$x, data$y)
  for (name in names(data$x)) {
    table <- model$tables[[name]]
    for (class in model$levels) {
      stopifnot(table[class, 2] > 0)
      stopifnot(dnorm(data$x[[name]], table[class, 1], table[class, 2]) > 0)
    }
  }
  list(
    classes = model$levels,
    counts = as.vector(model$apriori),
    mean = sapply(model$tables, function(table) table[, 1]),
    sd = sapply(model$tables, function(table) table[, 2]),
    posterior = predict(model, data$x, type = "raw",
                        threshold = .Machine$double.xmin, eps = 0)
  )
}

# A missing vote is NA: left out of the counts, and out of the product.
votes_posterior <- function() {
  data(HouseVotes84, package = "mlbench", envir = environment())
  x <- HouseVotes84[-1]
  y <- HouseVotes84$Class
  cells <- as.matrix(x)
  cells[is.na(cells)] <- "?"
  posterior <- function(laplace) {
    predict(naiveBayes(x, y, laplace = laplace), x, type = "raw",
            threshold = .Machine$double.xmin, eps = 0)
  }
  list(
    classes = levels(y),
    counts = as.vector(table(y)),
    rows = apply(cells, 1, paste, collapse = ""),
    labels = as.character(y),
    posterior_laplace_1 = posterior(1),
    posterior_laplace_3 = posterior(3)
  )
}

write_json(
  list(versions = versions(c("e1071", "mlbench")),
       iris = iris_posterior(), votes = votes_posterior()),
  "naive_bayes.json"
)
