package vetpy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/vet"
)

// Files are the programs and notebooks among paths: files as they are, of folders all within them but those of tools and of
// installed packages. The error is of the first path that is not there.
func Files(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && name != path && vet.Ignored(d.Name()):
				return filepath.SkipDir
			case d.Type().IsRegular() && IsProgram(name):
				files = append(files, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// IsProgram tells whether a file is one by its name.
func IsProgram(name string) bool {
	return strings.HasSuffix(name, ".py") || strings.HasSuffix(name, ".pyw") || strings.HasSuffix(name, ".ipynb")
}

// largest is how long a program may be. Nobody writes one of 16 MB.
const largest = 16 << 20

// CheckFile reads a program or a notebook by its name.
func CheckFile(name string) ([]vet.Found, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", name)
	}
	if info.Size() > largest {
		return nil, fmt.Errorf("%s: %d bytes are no program that somebody wrote", name, info.Size())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".ipynb") {
		return CheckNotebook(name, data)
	}
	return Check(name, data)
}
