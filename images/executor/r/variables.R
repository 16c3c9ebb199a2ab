# Describes the variables of a session.
#
# It calls no method of a class that the user may have written: such a print, length or format may run for ever, change things or fail.
# What it knows of a value it knows by how it is stored, by its attributes, and by classes of R's own. Active bindings are not called, and
# promises are not forced, but for R's data sets.
MOST <- 200 # variables
COLUMNS <- 50 # of one table
PREVIEW <- 80 # characters
SECONDS <- 1 # in all
PARTS <- 10000 # of a list, whose sizes are added up

# What the server reads of an expression's value.
answer <- function(...) {
  text <- as.character(jsonlite::toJSON(list(...), auto_unbox = TRUE, digits = NA, json_verbatim = TRUE))
  structure(list("application/vnd.cellblock.variables+json" = text, "text/plain" = "variables"), class = "cellblock_answer")
}

variables <- function() {
  deadline <- proc.time()[[3]] + SECONDS
  names <- ls(globalenv())
  kinds <- bindings(names)
  described <- list()
  for (name in first(names, MOST)) {
    if (proc.time()[[3]] > deadline) break
    described <- c(described, list(c(list(name = clip(name)), about_binding(name, kinds[[name]]))))
  }
  answer(variables = described, more = length(names) - length(described))
}

# Which of the session's names stand for a "value", which for an "active binding", and which for a "promise" that nobody has needed so far.
bindings <- function(names) {
  kinds <- ifelse(vapply(names, bindingIsActive, NA, globalenv()), "active binding", "value")
  lazy <- names[rlang::env_binding_are_lazy(globalenv(), names)]
  copy <- if (length(lazy)) rlang::env_clone(globalenv()) # R tells no expression of a promise in the session's own environment
  for (name in lazy) {
    promised <- do.call(substitute, list(as.name(name), copy))
    if (!is.call(promised) || !identical(promised[[1]], quote(lazyLoadDBfetch))) kinds[[name]] <- "promise"
  }
  kinds
}

about_binding <- function(name, kind) {
  if (kind != "value") return(list(type = kind))
  tryCatch(describe(get(name, globalenv())), error = function(e) list(type = "not described"))
}

describe <- function(value) {
  more <- if (is.function(value)) list(preview = signature_of(value))
    else if (is.environment(value)) list(length = length(ls(envir = value, all.names = TRUE, sorted = FALSE)))
    else if (typeof(value) == "list" && "data.frame" %in% class(value)) of_table(value)
    else if (is_vector(value)) of_vector(value)
    else if (isS4(value)) list(preview = listed("", sprintf("@%s", setdiff(names(attributes(value)), "class"))))
    else if (is.language(value)) list(preview = clip(deparse(value, nlines = 1)[[1]]))
  c(list(type = type_of(value)), more)
}

type_of <- function(value) {
  type <- class(value)[[1]]
  if (type %in% c("tbl_df", "spec_tbl_df")) "tibble" else clip(type)
}

is_vector <- function(value) is.atomic(value) && !is.null(value) || typeof(value) == "list"

first <- function(plain, most) .subset(plain, seq_len(min(length(plain), most)))

# Its numbers are stored as if they were others.
is_integer64 <- function(value) class(value)[[1]] == "integer64"

clip <- function(text, most = PREVIEW) {
  text <- iconv(enc2utf8(text), "UTF-8", "UTF-8", sub = "byte")
  if (is.na(text) || nchar(text) <= most) text else paste0(substr(text, 1, most - 1), "\u2026")
}

signature_of <- function(value) {
  clip(paste0("function(", paste(names(formals(args(value))), collapse = ", "), ")"))
}

of_table <- function(value) {
  columns <- unclass(value)
  about <- function(i) list(name = clip(attr(value, "names")[[i]], 60), dtype = type_of(columns[[i]]))
  c(list(shape = c(abs(.row_names_info(value, 2L)), length(columns))), size_of(columns),
    list(columns = lapply(first(seq_along(columns), COLUMNS), about)))
}

of_vector <- function(value) {
  plain <- unclass(value)
  dims <- attr(value, "dim")
  size <- if (length(dims)) list(shape = I(dims), dtype = typeof(plain)) else if (length(plain) != 1 || is.list(plain)) list(length = length(plain))
  c(size, if (length(size)) size_of(plain), if (!is_integer64(value)) list(preview = preview(value, plain)))
}

# What a vector, or the parts of a list, take in memory. Strings count as what refers to them, and what is in an environment does not.
size_of <- function(plain) {
  parts <- 0
  bytes <- function(part) {
    if ((parts <<- parts + 1) > PARTS || !is_vector(part)) return(0)
    part <- unclass(part)
    each <- c(logical = 4, integer = 4, double = 8, complex = 16, character = 8, raw = 1, list = 8)[[typeof(part)]]
    each * length(part) + if (is.list(part)) sum(vapply(first(part, PARTS), bytes, 0)) else 0
  }
  all <- bytes(plain)
  if (parts <= PARTS) list(bytes = structure(sprintf("%.0f", all), class = "json"))
}

# The beginning of a vector or a list, as R's code would say it.
preview <- function(value, plain) {
  begin <- first(plain, 11)
  texts <- if (is.list(plain)) vapply(begin, short, "") else texts_of(value, begin)
  if (length(plain) == 1 && !is.list(plain)) return(clip(texts))
  names <- attr(plain, "names")[seq_along(texts)]
  named <- !is.na(names) & nzchar(names)
  texts[named] <- paste(vapply(names[named], clip, "", 40), "=", texts[named])
  listed(if (is.factor(value)) "factor" else if (is.list(plain)) "list" else "c", texts, length(plain))
}

listed <- function(what, texts, count = length(texts)) {
  fit <- first(texts[cumsum(nchar(texts) + 2) <= PREVIEW - 8], 10)
  paste0(what, "(", paste(c(fit, if (length(fit) < count) "\u2026"), collapse = ", "), ")")
}

# A few characters for a value in a list; its type alone where no more is safe.
short <- function(value) {
  if (is.null(value)) return("NULL")
  plain <- if (is_vector(value)) unclass(value)
  if (is.atomic(plain) && length(plain) == 1 && !is_integer64(value)) return(clip(texts_of(value, plain), 40))
  paste0("<", clip(type_of(value), 40), if (is_vector(value)) paste(" of", length(plain)), ">")
}

# Texts for the first values of a vector.
texts_of <- function(value, begin) {
  if (!length(begin)) return(character())
  attributes(begin) <- NULL
  each <- function(texts, most) vapply(as.character(texts), clip, "", most, USE.NAMES = FALSE)
  texts <- if (is.factor(value)) each(attr(value, "levels")[begin], 40)
    else if (class(value)[[1]] == "Date") format.Date(structure(begin, class = "Date"))
    else if (class(value)[[1]] == "POSIXct") format.POSIXct(structure(begin, class = c("POSIXct", "POSIXt"), tzone = attr(value, "tzone")))
    else if (is.character(begin)) ifelse(is.na(begin), NA, encodeString(each(begin, PREVIEW), quote = "\""))
    else if (is.double(begin)) sprintf(ifelse(is.na(begin) | begin == round(begin), "%.15g", "%.7g"), begin)
    else as.character(begin)
  ifelse(is.na(texts), "NA", texts)
}
