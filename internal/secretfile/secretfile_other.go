//go:build !unix

package secretfile

import "io/fs"

// private is always true where mode bits say nothing; there the profile folder's access list keeps others out.
func private(fs.FileInfo) bool { return true }

// ours is always true where files carry no user id.
func ours(fs.FileInfo) bool { return true }

// Sealed is always true where mode bits say nothing.
func Sealed(fs.FileInfo) bool { return true }
