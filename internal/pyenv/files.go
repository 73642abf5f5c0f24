package pyenv

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxText is how much is read of a file of text.
const maxText = 4 << 20

// maxNames is how many names are taken of a folder.
const maxNames = 20_000

func (s *Search) real(path string) string { return s.Root + path }

// open returns the file, or nil if it is none: devices and pipes would wait for somebody.
func (s *Search) open(path string) *os.File {
	if !s.isFile(path) {
		return nil
	}
	f, err := os.Open(s.real(path))
	if err != nil {
		return nil
	}
	return f
}

// text returns the file's first n bytes, nil if it cannot be read.
func (s *Search) text(path string, n int64) []byte {
	f := s.open(path)
	if f == nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return nil
	}
	return b
}

// lines calls do with the lines of a file, up to one that gives false.
func (s *Search) lines(path string, do func(line string) bool) {
	f := s.open(path)
	if f == nil {
		return
	}
	defer f.Close()
	scanLines(io.LimitReader(f, maxText), do)
}

// scanLines is lines of a reader. A line that is longer than a buffer ends it.
func scanLines(r io.Reader, do func(line string) bool) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), 1<<20)
	for sc.Scan() {
		if !do(strings.TrimSuffix(sc.Text(), "\r")) {
			return
		}
	}
	_ = sc.Err() // what was read until then counts
}

func (s *Search) stat(path string) fs.FileInfo {
	st, err := os.Stat(s.real(path))
	if err != nil {
		return nil
	}
	return st
}

func (s *Search) isFile(path string) bool {
	st := s.stat(path)
	return st != nil && st.Mode().IsRegular()
}

func (s *Search) isDir(path string) bool {
	st := s.stat(path)
	return st != nil && st.IsDir()
}

// names returns the names in a folder, sorted; none if it cannot be read.
func (s *Search) names(path string) []string {
	f, err := os.Open(s.real(path))
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxNames)
	slices.Sort(names)
	return names
}

// resolve follows symbolic links; a path that leads nowhere is returned as it is.
func (s *Search) resolve(path string) string {
	p, err := filepath.EvalSymlinks(s.real(path))
	if err != nil {
		return path
	}
	return strings.TrimPrefix(p, s.root())
}

// root is Root as EvalSymlinks writes it.
func (s *Search) root() string {
	if s.Root == "" {
		return ""
	}
	p, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return s.Root
	}
	return p
}

// values reads lines of the form name = value.
func (s *Search) values(path string) map[string]string {
	all := map[string]string{}
	s.lines(path, func(line string) bool {
		if name, value, ok := strings.Cut(line, "="); ok {
			all[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
		return true
	})
	return all
}

// machine tells from the beginning of a program for which processors it is; empty where it does not say.
func machine(head []byte) string {
	switch {
	case len(head) >= 20 && bytes.HasPrefix(head, []byte("\x7fELF")):
		return elfMachines[[2]byte{head[18], head[19]}]
	case len(head) >= 8 && bytes.HasPrefix(head, []byte{0xcf, 0xfa, 0xed, 0xfe}):
		return machMachines[head[4]]
	case len(head) >= 8 && bytes.HasPrefix(head, []byte{0xca, 0xfe, 0xba, 0xbe}) && head[7] < 20: // Java's class files have their version there
		return "universal"
	case len(head) >= 64 && bytes.HasPrefix(head, []byte("MZ")):
		at := int(head[0x3c]) | int(head[0x3d])<<8
		if at+6 <= len(head) && bytes.HasPrefix(head[at:], []byte("PE\x00\x00")) {
			return peMachines[[2]byte{head[at+4], head[at+5]}]
		}
	}
	return ""
}

var (
	elfMachines  = map[[2]byte]string{{62, 0}: "x86_64", {183, 0}: "arm64", {3, 0}: "x86"}
	peMachines   = map[[2]byte]string{{0x64, 0x86}: "x86_64", {0x64, 0xaa}: "arm64", {0x4c, 0x01}: "x86"}
	machMachines = map[byte]string{0x07: "x86_64", 0x0c: "arm64"} // with 0x01000000 for 64 bits
)
