package tables

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"strings"
)

// PackFiles compresses files of a folder as one: what stands in several of them is there once.
func PackFiles(folder fs.FS, names []string) ([]byte, error) {
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(text); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return Pack(archive.Bytes()), nil
}

// Files are those of [PackFiles]. It panics if they are none: that is a mistake of the build.
func Files(packed string) fs.FS {
	text := Unpack(packed)
	files, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		panic(err)
	}
	return files
}
