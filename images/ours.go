package images

// Ours is a language for which this project has an image, for those who miss it.
type Ours struct {
	// Name is the language's, Target what Dockerfile.executor calls its image: "cellblock-" and it.
	Name, Target string
	// Debian is the package that brings its kernel to a host of Debian or Ubuntu, where there is one; for the others there is
	// a kernelspec of ours.
	Debian string
}

// AllOurs returns them, sorted by name.
func AllOurs() []Ours {
	return []Ours{
		{"bash", "bash", ""}, {"csharp", "csharp", ""}, {"javascript", "node", ""}, {"python", "python", "python3-ipykernel"},
		{"r", "r", "r-cran-irkernel"}, {"typescript", "node", ""},
	}
}
