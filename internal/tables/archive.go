package tables

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Archive is files of a folder as one text, which is packed as one: what stands in several of them is there once. It begins with a
// line SIZE NAME for each and an empty one; an archive of zip has sums and places besides, 20 KB for the kernels.
func Archive(folder fs.FS, names []string) ([]byte, error) {
	var head, texts bytes.Buffer
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&head, "%d %s\n", len(text), name)
		texts.Write(text)
	}
	head.WriteByte('\n')
	return append(head.Bytes(), texts.Bytes()...), nil
}

// Files are those of a packed [Archive]. It panics if they are none: that is a mistake of the build.
func Files(packed string) fs.FS {
	head, texts, _ := strings.Cut(Unpack(packed), "\n\n")
	var archive bytes.Buffer
	archive.Grow(len(texts) + 4*len(head))
	z := zip.NewWriter(&archive)
	for line := range strings.Lines(head) {
		var size int
		var name string
		_, err := fmt.Sscanf(line, "%d %s", &size, &name)
		if err == nil {
			err = store(z, name, texts[:size])
		}
		if err != nil {
			panic(err)
		}
		texts = texts[size:]
	}
	err := z.Close()
	files, also := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	if err != nil || also != nil {
		panic(fmt.Sprint(err, also))
	}
	return files
}

func store(z *zip.Writer, name, text string) error {
	f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err == nil {
		_, err = io.WriteString(f, text)
	}
	return err
}
