// Package quota bounds what folders take on their disk, by the project quotas of their file system: a project of its own for
// each folder, which all that is made in it inherits, and a hard limit. Who reaches it gets EDQUOT, "Disk quota exceeded", at
// once; on XFS ENOSPC, "No space left on device".
//
// Files stay in the project that they were made in, and cannot be renamed into a folder of another. So only an empty folder is
// given one, and a folder that takes the files of another joins its project first (Join).
//
// Code that runs as the files' owner in the host's user namespace, as it does in most engines' containers, may put its files
// into another project. What bounds hostile code is something else.
package quota

import "errors"

// ErrNone is why Check fails where a folder cannot be bounded; its text says what is missing.
var ErrNone = errors.New("no project quota")

// bytesPerFile is how many bytes of a limit allow one more file, as in file systems that are made: empty files take none, and
// still a file system has but so many.
const (
	bytesPerFile = 16 << 10
	leastFiles   = 1000
)

// mostFiles is how many files and folders a limit in bytes allows.
func mostFiles(limit int64) int64 { return max(limit/bytesPerFile, leastFiles) }
