package vet

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Ignored tells whether a folder is one of tools, of other people's code or of tests' data, which is passed over where a folder is read.
func Ignored(name string) bool {
	switch name {
	case "node_modules", "site-packages", "__pycache__", "venv", "env", "build", "dist", "vendor", "testdata":
		return true
	}
	return len(name) > 1 && strings.HasPrefix(name, ".")
}

// isEnvironment tells whether a folder is one into which Python was installed, whatever its name: by venv, or by conda.
func isEnvironment(dir string) bool {
	for _, mark := range []string{"pyvenv.cfg", "conda-meta"} {
		if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
			return true
		}
	}
	return false
}

// Walk calls file for each regular file below a folder in the order of names, but for what is Ignored; links in it are not followed.
// The folder itself may be a link, and have any name. What cannot be listed goes to unread, and the walk goes on.
func Walk(dir string, file func(name string), unread func(error)) {
	root := dir
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		root = at
	}
	_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error { // f has no error of its own
		switch {
		case err != nil:
			unread(err)
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
		case d.IsDir() && name != root && (Ignored(d.Name()) || isEnvironment(name)):
			return filepath.SkipDir
		case d.Type().IsRegular():
			file(filepath.Join(dir, strings.TrimPrefix(name, root)))
		}
		return nil
	})
}
