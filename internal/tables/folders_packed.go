//go:build packed

package tables

import (
	_ "embed"
	"io/fs"
	"sync"
)

//go:embed folders.pack
var folders string

// unpacked is the archive, unpacked when a file of it is first asked for.
var unpacked = sync.OnceValue(func() fs.FS { return Files(folders) })

// Folder is a folder of the module with what [Folders] names of it.
func Folder(dir string) fs.FS { return folder(dir) }

type folder string

// Open opens a file of the folder.
func (f folder) Open(name string) (fs.File, error) {
	files, err := fs.Sub(unpacked(), string(f))
	if err != nil {
		return nil, err
	}
	return files.Open(name)
}
