# Saves the variables of a session when its kernel is to be stopped, and, for the case that it dies, now and then while it goes on; and
# loads them into the next one.
#
# All of them are serialized as one: environments that functions, formulas and objects share they share again. Of the session's own, in which
# functions of cells look up what they use, R writes only which it is. Pointers into memory, as to a connection, point at nothing in
# another process: what has one in it is not saved.
MOST_TOLD <- 20 # names of what is not saved
LONGEST_ASIDE <- 60 # seconds in which a process of its own must have saved them
PLACE <- file.path(getwd(), ".cellblock-variables") # the next kernel has the same folder, under the same name
locale <- function() sapply(c("LC_COLLATE", "LC_CTYPE", "LC_MONETARY", "LC_TIME"), Sys.getlocale)
BEGAN <- list(options = options(), attached = search(), environment = Sys.getenv(), locale = locale())

# What R and S4 keep among the session's names, and nobody has named.
unnamed <- function(names) grepl("^\\.(Random\\.seed$|__[CT]__)", names)

save <- function(cell) {
  unlink(paste0(PLACE, ".checkpoint")) # who still writes it gives up
  new <- paste0(PLACE, ".new")
  on.exit(unlink(new))
  answer(saved = save_as(new, cell))
}

save_as <- function(new, cell) {
  names <- setdiff(ls(globalenv(), all.names = TRUE), ".pbd_env") # which is how the kernel speaks
  kinds <- bindings(names)
  values <- mget(names[kinds == "value"], globalenv())
  left <- sprintf("%s (%s)", names, kinds)[kinds != "value"]
  if (all(unnamed(names(values)))) {
    unlink(c(PLACE, new))
    return(0)
  }
  whole <- TRUE
  tryCatch(write(new, cell, list(state(left), values), function(pointer) whole <<- FALSE), error = function(e) whole <<- FALSE)
  if (!whole) {
    unfit <- unfit_among(values)
    left <- c(left, mapply(about, names(values)[unfit], values[unfit], USE.NAMES = FALSE))
    values <- values[!unfit]
    write(new, cell, list(state(left), values), function(pointer) NULL)
  }
  if (!file.rename(new, PLACE)) stop("the file cannot be renamed")
  sum(!unnamed(names(values)))
}

# A copy of this process does it: the kernel goes on, nothing changes meanwhile, and what goes wrong there is not the kernel's. Its file is
# there while it goes on, and stays where it fails.
last_aside <- NA # when this kernel's last has begun
checkpoint <- function(cell, most) {
  new <- paste0(PLACE, ".checkpoint")
  now <- as.numeric(Sys.time())
  unfinished <- file.exists(new)
  took <- if (unfinished) min(now - last_aside, LONGEST_ASIDE, na.rm = TRUE) else max(0, as.numeric(file.mtime(PLACE)) - last_aside, na.rm = TRUE)
  if (!unfinished || took == LONGEST_ASIDE) {
    last_aside <<- now
    file.create(new, showWarnings = FALSE)
    gc() # leaves the copy nothing to finalize: a connection that it closed would write what the kernel's writes, too
    # Its parent is the kernel's only child, and ends at once. The kernel knows when the copy has closed what it has of the kernel's.
    suspendInterrupts(parallel:::readChild(forked(forked(save_aside(new, cell, most), estranged = TRUE))))
  }
  answer(took = took)
}

# Evaluates work in a copy of this process, which never returns, and runs nothing at its end. An estranged one is no child that R knows.
forked <- function(work, estranged = FALSE) {
  pid <- .Call(parallel:::C_mc_fork, estranged)[[1]] # mcfork() would open a file for what a cell's prints
  if (pid) return(pid)
  tryCatch(work, error = function(e) NULL, finally = tools::pskill(Sys.getpid(), tools::SIGKILL))
}

# Has one more copy save them, which waits for ever for a lock that a thread had, and is killed then.
save_aside <- function(new, cell, most) {
  parallel:::closeStdout(TRUE)
  parallel:::closeStderr(TRUE)
  open <- as.integer(list.files("/proc/self/fd"))
  parallel:::closeFD(open[open > 2]) # at whose other end somebody may wait
  try(writeLines("cellblock-saves", "/proc/self/comm"), silent = TRUE) # by which the shim knows it
  try(writeLines("1000", "/proc/self/oom_score_adj"), silent = TRUE) # this one first
  free <- as.numeric(system2("df", c("--output=avail", "--block-size=1", shQuote(dirname(new))), stdout = TRUE)[[2]])
  most <- min(most, free / 10) # others have it, too
  if (system2("prlimit", sprintf("--pid=%d --core=0 --fsize=%.0f", Sys.getpid(), most), stdout = FALSE)) stop("files have no bound")
  tools::psnice(value = 19)
  saving <- forked(save_as(new, cell))
  wait <- function() tryCatch(parallel:::selectChildren(saving, LONGEST_ASIDE), interrupt = function(e) wait()) # which is meant for cells
  wait()
  tools::pskill(saving, tools::SIGKILL)
  if (file.exists(new)) file.create(new) # what has failed takes no room
}

about <- function(name, value) sprintf("%s (%s)", clip(name, 60), clip(class(value)[[1]], 60))

# What the session has beside its variables.
state <- function(left) {
  changed <- Filter(function(name) !identical(getOption(name), BEGAN$options[[name]]), names(options()))
  attached <- setdiff(search(), BEGAN$attached)
  environment <- as.list(Sys.getenv())
  environment <- environment[!mapply(identical, environment, as.list(BEGAN$environment)[names(environment)])]
  data <- attached[!startsWith(attached, "package:")]
  list(
    left = as.character(left), options = options()[changed], environment = environment, folder = getwd(), libraries = .libPaths(), namespaces = loadedNamespaces(),
    locale = locale()[locale() != BEGAN$locale], locked = Filter(function(name) bindingIsLocked(name, globalenv()), ls(globalenv(), all.names = TRUE)),
    attached = rev(attached), data = sapply(data, function(name) as.list(as.environment(name), all.names = TRUE), simplify = FALSE)
  )
}

# Writes each of all, behind a line for the server, and hands over the pointers that it meets and that are of use.
write <- function(path, cell, all, meet) {
  to <- file(path, "wb", raw = TRUE)
  closed <- FALSE
  on.exit(if (!closed) close(to))
  useless <- useless_pointers()
  replace <- function(reference) {
    if (typeof(reference) != "externalptr") return(NULL)
    if (!is_among(reference, useless)) meet(reference)
    "" # which load() makes one that points at nothing
  }
  writeLines(sprintf('{"cell": %d}', as.integer(cell)), to)
  for (one in all) serialize(one, to, xdr = FALSE, refhook = replace)
  closed <- TRUE
  if (!identical(suppressWarnings(close(to)), 0L)) stop("the file cannot be written: the disk is full")
}

# Those that point at nothing, those that classes have, and those by which a data.table knows itself.
useless_pointers <- function() {
  list(new("externalptr"), methods:::.newExternalptr(), if (isNamespaceLoaded("data.table")) attr(data.table::data.table(), ".internal.selfref"))
}

is_among <- function(pointer, all) any(vapply(all, identical, NA, pointer))

# Which of the values cannot be saved. Each is tried for itself.
unfit_among <- function(values) {
  useless <- unlist(lapply(values, problems_in))
  unfit <- function(value) tryCatch({
    write(nullfile(), 0, list(value), function(pointer) if (!is_among(pointer, useless)) stop("it points into memory"))
    FALSE
  }, error = function(e) TRUE)
  vapply(values, unfit, NA)
}

# A table that readr has read points at what it could not read.
problems_in <- function(value, depth = 5) {
  if (typeof(value) != "list" || !depth) return(NULL)
  pointer <- attr(value, "problems")
  c(if (typeof(pointer) == "externalptr") list(pointer), unlist(lapply(first(unclass(value), 1000), problems_in, depth - 1)))
}

# The file goes before it is read: a kernel that dies of it is not the first of many. It comes back for the case that this kernel dies later,
# but not where it could not be read.
load <- function() {
  loading <- paste0(PLACE, ".loading")
  if (!file.rename(PLACE, loading)) stop("the file is not there")
  on.exit(unlink(loading))
  loaded <- load_from(loading)
  if (loaded$why == "") file.rename(loading, PLACE)
  left <- loaded$left
  answer(
    back = loaded$back, left = I(first(left, MOST_TOLD)), more = max(0, length(left) - MOST_TOLD), why = clip(loaded$why, 300),
    never = "what cells had set in packages"
  )
}

load_from <- function(path) {
  from <- file(path, "rb", raw = TRUE)
  on.exit(close(from))
  read <- function() unserialize(from, refhook = function(name) new("externalptr"))
  back <- 0
  left <- character()
  why <- tryCatch({
    readLines(from, 1)
    before <- read()
    left <- before$left
    utils::capture.output(missing <- go_where_it_was(before), file = nullfile())
    left <- c(left, missing)
    values <- read()
    list2env(values, globalenv())
    back <- sum(!unnamed(names(values)))
    renew(names(values))
    for (name in intersect(before$locked, names(values))) lockBinding(name, globalenv())
    ""
  }, error = conditionMessage, interrupt = function(e) "it was interrupted")
  list(back = back, left = left, why = why)
}

# Attaches what was attached, in that order, and returns which packages are not there.
go_where_it_was <- function(before) {
  .libPaths(c(before$libraries, .libPaths()))
  if (length(before$environment)) do.call(Sys.setenv, before$environment)
  missing <- character()
  suppressMessages(suppressWarnings({
    for (name in before$attached) {
      package <- sub("^package:", "", name)
      if (package == name) attach(before$data[[name]], name = name, warn.conflicts = FALSE)
      else if (!require(package, character.only = TRUE, warn.conflicts = FALSE)) missing <- c(missing, sprintf("%s (package)", package))
    }
    for (name in before$namespaces) requireNamespace(name, quietly = TRUE)
  }))
  try(options(before$options), silent = TRUE)
  try(setwd(before$folder), silent = TRUE)
  for (name in names(before$locale)) suppressWarnings(Sys.setlocale(name, before$locale[[name]]))
  missing
}

# Makes what knows variables by where they are know them again: S4 its classes and methods, and data.table its tables, to which it adds in place.
renew <- function(names) {
  if (any(startsWith(names, ".__"))) try(methods::cacheMetaData(globalenv(), TRUE), silent = TRUE)
  for (name in names) try({
    value <- get(name, globalenv())
    if (typeof(value) == "list" && "data.table" %in% class(value)) assign(name, data.table::setalloccol(value), globalenv())
  }, silent = TRUE)
}
