# Areas under ROC curves, with DeLong's variance and intervals, of pROC on its
# own data: Rscript roc.R

source("shared.R")
suppressMessages(library(pROC))

data(aSAH)
outcome <- as.character(aSAH$outcome)

curve <- function(score) {
  curve <- roc(outcome, score, levels = c("Good", "Poor"), direction = "<")
  interval <- function(level) {
    as.vector(ci.auc(curve, conf.level = level, method = "delong"))[c(1, 3)]
  }
  list(
    score = score,
    auc = I(as.numeric(auc(curve))),
    variance = I(var(curve, method = "delong")),
    interval_95 = interval(0.95),
    interval_80 = interval(0.8)
  )
}

write_json(
  list(
    versions = versions("pROC"),
    outcome = outcome,
    s100b = curve(aSAH$s100b),
    ndka = curve(aSAH$ndka),
    wfns = curve(as.numeric(aSAH$wfns)),  # five grades: nearly all are ties
    reversed = curve(-aSAH$s100b)
  ),
  "roc.json"
)
