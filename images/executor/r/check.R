# Fails unless what the image promises is there: the kernel, the libraries, a device that draws PNG without a display.
for (name in c("IRkernel", "ggplot2", "dplyr", "readr", "data.table")) stopifnot(requireNamespace(name, quietly = TRUE))
stopifnot(capabilities("cairo"))
file <- tempfile(fileext = ".png")
png(file, type = "cairo")
plot(1:3, main = "check")
invisible(dev.off())
stopifnot(file.size(file) > 1000)
