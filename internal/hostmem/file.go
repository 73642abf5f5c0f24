package hostmem

import (
	"fmt"
	"os"
)

// A File is the contents of a file, mapped read-only. Writing to them crashes
// the program, and so does reading beyond the end of a file that another
// process has shortened since.
type File struct {
	data   []byte
	mapped bool
}

// MapFile maps the file at path. An empty file has no bytes and is no error;
// a directory or a device is one.
func MapFile(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, fmt.Errorf("cannot map %s: it is a %s, not a regular file", path, kind(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping outlives the descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot map %s: it is no regular file any more", path)
	}
	size := info.Size()
	if size == 0 {
		return &File{}, nil
	}
	if size > int64(maxSize) {
		return nil, fmt.Errorf("cannot map %s: its %d bytes exceed the address space", path, size)
	}
	data, mapped, err := mapFile(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("cannot map %s (%d bytes): %w", path, size, err)
	}
	if mapped {
		files.Add(int64(pages(len(data))))
	}
	return &File{data, mapped}, nil
}

func kind(m os.FileMode) string {
	if m.IsDir() {
		return "directory"
	}
	return "special file"
}

// Bytes returns the contents, nil once the file is closed.
func (f *File) Bytes() []byte { return f.data }

// Close unmaps the file. Its bytes are invalid afterwards; a second Close does
// nothing.
func (f *File) Close() error {
	data, mapped := f.data, f.mapped
	*f = File{}
	if !mapped {
		return nil
	}
	if err := unmapFile(data); err != nil {
		return fmt.Errorf("cannot unmap %d bytes: %w", len(data), err)
	}
	files.Add(-int64(pages(len(data))))
	return nil
}
