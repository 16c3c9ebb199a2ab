package images

// Ours is a language for which this project has a kernel or an image, for those who miss it.
type Ours struct {
	// Name is the language's, Target what Dockerfile.executor calls its image: "cellblock-" and it.
	Name, Target string
}

// AllOurs returns them, sorted by name.
func AllOurs() []Ours {
	return []Ours{
		{"bash", "bash"}, {"csharp", "csharp"}, {"javascript", "node"}, {"python", "python"}, {"r", "r"}, {"typescript", "node"},
	}
}
