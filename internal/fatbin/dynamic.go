package fatbin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
)

// Dependencies are what an ELF library asks of the loader.
type Dependencies struct {
	Needed  []string // libraries
	RPath   []string // folders to look in before LD_LIBRARY_PATH, where there is no RunPath
	RunPath []string // folders to look in behind it
}

// maxDynamic is how much is read of a table of dynamic entries: 16 bytes each.
const maxDynamic = 64 << 10

// Dynamic reads the dependencies of an ELF library of 64 bits. It reads the texts that it wants, never the whole table of names, which in
// libraries of C++ has tens of megabytes.
func Dynamic(path string) (*Dependencies, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, err
	}
	d := &Dependencies{}
	table := f.SectionByType(elf.SHT_DYNAMIC)
	if table == nil || int(table.Link) >= len(f.Sections) || f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB {
		return d, nil
	}
	entries := make([]byte, min(table.FileSize, maxDynamic))
	n, _ := file.ReadAt(entries, int64(table.Offset))
	texts := f.Sections[table.Link]
	for e := range slicesOf(entries[:n], 16) {
		tag, at := elf.DynTag(binary.LittleEndian.Uint64(e)), binary.LittleEndian.Uint64(e[8:])
		if tag == elf.DT_NULL {
			break
		}
		if at >= texts.FileSize {
			continue
		}
		switch tag {
		case elf.DT_NEEDED:
			d.Needed = append(d.Needed, text(file, texts.Offset+at))
		case elf.DT_RPATH:
			d.RPath = strings.Split(text(file, texts.Offset+at), ":")
		case elf.DT_RUNPATH:
			d.RunPath = strings.Split(text(file, texts.Offset+at), ":")
		}
	}
	return d, nil
}

// slicesOf yields whole pieces of n bytes.
func slicesOf(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(b) >= n; b = b[n:] {
			if !yield(b[:n]) {
				return
			}
		}
	}
}

// text is a text that ends with 0, of no more than 4096 bytes.
func text(file *os.File, at uint64) string {
	b := make([]byte, 4096)
	n, _ := file.ReadAt(b, int64(at))
	s, _, _ := bytes.Cut(b[:n], []byte{0})
	return string(s)
}
