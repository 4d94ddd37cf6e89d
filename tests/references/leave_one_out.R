# Leave-one-out posteriors of MASS::lda and MASS::qda: Rscript leave_one_out.R DIRECTORY

source("shared.R")
library(MASS)

posteriors <- function(name) {
  data <- read_data(name)
  posterior <- function(fit, method) {
    fit(as.matrix(data$x), data$y, method = method, CV = TRUE)$posterior
  }
  list(
    classes = levels(data$y),
    lda = list(moment = posterior(lda, "moment"), mle = posterior(lda, "mle")),
    qda = list(moment = posterior(qda, "moment"), mle = posterior(qda, "mle"))
  )
}

write_json(
  list(versions = versions("MASS"), iris = posteriors("iris")),
  "leave_one_out.json"
)
