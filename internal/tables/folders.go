package tables

import (
	"archive/zip"
	"io/fs"
)

// Folders are the texts that a release has compressed in one archive, from the root of the module: folders, or patterns of files.
// A package that reads its own has two files: embedded.go embeds them, without the tag, and packed.go takes them of [Folder].
func Folders() []string {
	return []string{
		"examples/lessons/l*.go", "examples/lessons/python/*.py", "examples/sim/sum*", "examples/sim/tour.*",
		"internal/exercise/_files", "internal/lab/assets", "internal/lesson/assets", "internal/lesson/text", "internal/vet/programs",
	}
}

// PackFolders compresses what [Folders] names of a module.
func PackFolders(module fs.FS) ([]byte, error) {
	var archive writer
	z := zip.NewWriter(&archive)
	for _, pattern := range Folders() {
		roots, err := fs.Glob(module, pattern)
		if err != nil {
			return nil, err
		}
		if len(roots) == 0 {
			return nil, &fs.PathError{Op: "pack", Path: pattern, Err: fs.ErrNotExist}
		}
		for _, root := range roots {
			if err := addFiles(z, module, root); err != nil {
				return nil, err
			}
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return Pack(archive), nil
}

// addFiles adds a file, or those of a folder.
func addFiles(z *zip.Writer, module fs.FS, root string) error {
	return fs.WalkDir(module, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store}) // all are compressed as one
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return err
	})
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
