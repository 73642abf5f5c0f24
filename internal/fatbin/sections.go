package fatbin

import (
	"bytes"
	"debug/elf"
	"debug/pe"
	"fmt"
	"io"
)

// span is a part of a file: from at, before end.
type span struct{ at, end int64 }

// names are those of the sections that hold fat binaries: linked, of relocatable device code, and as PE cuts the first to 8 bytes.
var names = map[string]bool{".nv_fatbin": true, "__nv_relfatbin": true, ".nv_fatb": true, "__nv_rel": true}

// sections returns where the file has fat binaries.
func sections(r io.ReaderAt, size int64) ([]span, error) {
	var head [4]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("too short for a library: %d bytes", size)
	}
	switch {
	case bytes.Equal(head[:], []byte(elf.ELFMAG)):
		return elfSections(r, size)
	case head[0] == 'M' && head[1] == 'Z':
		return peSections(r, size)
	}
	return nil, fmt.Errorf("neither ELF nor PE: the file begins with % x", head)
}

func elfSections(r io.ReaderAt, size int64) ([]span, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	var found []span
	for _, s := range f.Sections {
		if names[s.Name] && s.Type == elf.SHT_PROGBITS {
			found = append(found, within(s.Offset, s.FileSize, size))
		}
	}
	return found, nil
}

func peSections(r io.ReaderAt, size int64) ([]span, error) {
	f, err := pe.NewFile(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	var found []span
	for _, s := range f.Sections {
		if names[s.Name] {
			found = append(found, within(uint64(s.Offset), uint64(s.Size), size))
		}
	}
	return found, nil
}

// within cuts a section to the file.
func within(at, long uint64, size int64) span {
	at = min(at, uint64(size))
	return span{int64(at), int64(at + min(long, uint64(size)-at))}
}
