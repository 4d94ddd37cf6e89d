# Reading the exported CSV files, and writing JSON in which every double
# survives the round trip (jsonlite stops at 15 significant digits).

invisible(Sys.setlocale("LC_COLLATE", "C"))  # levels in the order of Python's sorted

read_table <- function(name) {
  directory <- commandArgs(trailingOnly = TRUE)[1]
  read.csv(file.path(directory, paste0(name, ".csv")), check.names = FALSE)
}

read_data <- function(name) {
  data <- read_table(name)
  last <- ncol(data)
  list(x = data[-last], y = factor(data[[last]]))
}

# A named list becomes an object, a matrix a list of rows, a vector a list
# (a long one with an item per line), I(value) a single item.
json <- function(value) {
  if (is.list(value)) {
    members <- paste0('"', names(value), '": ', vapply(value, json, ""))
    paste0("{\n", paste(members, collapse = ",\n"), "\n}")
  } else if (is.matrix(value)) {
    rows <- apply(value, 1, json)
    paste0("[\n", paste(rows, collapse = ",\n"), "\n]")
  } else {
    items <- if (is.character(value)) {
      paste0('"', gsub('(["\\\\])', '\\\\\\1', value), '"')
    } else {
      stopifnot(is.finite(value))
      sprintf("%.17g", value)
    }
    if (inherits(value, "AsIs")) return(items)
    separator <- if (length(items) > 20) ",\n" else ", "
    paste0("[", paste(items, collapse = separator), "]")
  }
}

write_json <- function(value, file) writeLines(json(value), file)

versions <- function(packages) {
  version <- function(package) packageDescription(package)$Version
  c(R.version.string, paste(packages, vapply(packages, version, "")))
}
