# Posteriors of MASS::lda and MASS::qda: Rscript discriminant.R DIRECTORY

source("shared.R")
library(MASS)

posteriors <- function(name) {
  data <- read_data(name)
  posterior <- function(fit) {
    model <- fit(as.matrix(data$x), data$y, method = "moment")
    predict(model, as.matrix(data$x), method = "plug-in")$posterior
  }
  list(
    classes = levels(data$y),
    counts = as.vector(table(data$y)),
    lda = posterior(lda),
    qda = posterior(qda)
  )
}

write_json(
  list(versions = versions("MASS"),
       iris = posteriors("iris"), wine = posteriors("wine")),
  "discriminant.json"
)
