// Package fatbin tells for which GPUs a library has code, from the headers of the fat binaries in it. Nothing is executed,
// decompressed or read but headers.
//
// A fat binary, as nvcc embeds it (ELF section .nv_fatbin, PE section .nv_fatb), is a row of containers. A container is a header of
// 16 bytes (magic 0xBA55ED50, version, length of the header, length of what follows) and entries: a header that begins with
// kind (1 PTX, 2 cubin), its own length and that of the payload, and has, for our purpose, the architecture at byte 28, the version
// of the PTX language at 24 and 26, and flags at 40. The layout is not published; it was checked against what NVIDIA's cuobjdump lists
// (TestAgainstCuobjdump).
package fatbin

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/warpline-ml/warpline/internal/sorting"
)

const (
	magic       = 0xBA55ED50
	headerSize  = 16
	entrySize   = 64 // the shortest header of an entry: longer ones have options behind
	kindPTX     = 1
	kindCubin   = 2
	flagArch    = 0x100000 // code for exactly this architecture: sm_90a
	flagFamily  = 0x200000 // code for its family: sm_100f
	maxEntries  = 1 << 20  // of a section; libraries have some thousands
	maxTrailing = 1 << 16  // bytes between two containers that are looked through for the next
)

// Target is what a piece of code was made for.
type Target struct {
	PTX   bool `json:"ptx,omitempty"`   // text for the driver to compile, not machine code
	SM    int  `json:"sm"`              // compute capability times ten: 90 for 9.0
	Exact bool `json:"exact,omitempty"` // of features that no other architecture has: sm_90a
}

// String is the name that compilers give it: sm_90a, compute_90.
func (t Target) String() string {
	name := "sm"
	if t.PTX {
		name = "compute"
	}
	suffix := ""
	if t.Exact {
		suffix = "a"
	}
	return fmt.Sprintf("%s_%d%s", name, t.SM, suffix)
}

// Runs says whether a card of a compute capability (major, minor) can use the code, as far as architectures go: machine code on the
// same major and no lower minor, code of exact features on its own only, PTX on all that are no older.
func (t Target) Runs(compute [2]int) bool {
	sm := 10*compute[0] + compute[1]
	switch {
	case t.Exact:
		return sm == t.SM
	case t.PTX:
		return sm >= t.SM
	}
	return sm/10 == t.SM/10 && sm >= t.SM
}

// Row is how many containers of a library have code for a target.
type Row struct {
	Target
	Containers int    `json:"containers"`
	Version    [2]int `json:"version,omitzero"` // of PTX: the newest version of the language, major and minor
}

// Code is what a library has code for.
type Code struct {
	Containers int   `json:"containers"`       // that were looked at: roughly, source files
	Rows       []Row `json:"rows"`             // by machine code before PTX, then architecture
	More       bool  `json:"more,omitempty"`   // there are containers behind those that were looked at
	Broken     int64 `json:"broken,omitempty"` // offset in the file at which the walk had to stop; 0: it did not
}

// Common returns the targets that at least half of the containers have. Single files of a library are compiled for more
// architectures or fewer than the rest; a card that only they serve is not served.
func (c *Code) Common() []Row {
	var common []Row
	for _, r := range c.Rows {
		if 2*r.Containers >= c.Containers {
			common = append(common, r)
		}
	}
	return common
}

// ErrNone is the error for a file without device code.
var ErrNone = errors.New("no fat binary in the file")

// Open reads the headers of the file's fat binaries, of its first containers if limit is not 0.
func Open(path string, limit int) (*Code, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c, err := Read(f, st.Size(), limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Read is Open of a file of size bytes: ELF or PE of 64 bits. A file without device code gives ErrNone. Where a
// container is cut or no container, the walk stops, and Code.Broken is the place.
func Read(r io.ReaderAt, size int64, limit int) (*Code, error) {
	found, err := sections(r, size)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNone
	}
	w := walk{r: r, limit: limit, seen: map[Target]int{}, versions: map[Target][2]int{}}
	for _, s := range found {
		w.section(s)
	}
	return w.code(), nil
}

// walk goes over the containers of a file.
type walk struct {
	r        io.ReaderAt
	limit    int
	done     int
	entries  int
	seen     map[Target]int
	versions map[Target][2]int
	more     bool
	broken   int64
	buf      [entrySize]byte
}

// read returns n bytes at a place; false where the file has none.
func (w *walk) read(at int64, n int) ([]byte, bool) {
	k, err := w.r.ReadAt(w.buf[:n], at)
	return w.buf[:n], k == n && (err == nil || err == io.EOF)
}

// section walks the containers of a section.
func (w *walk) section(s span) {
	skipped := 0
	for at := s.at; at+headerSize <= s.end; {
		if w.limit > 0 && w.done == w.limit {
			w.more = true
			return
		}
		h, ok := w.read(at, headerSize)
		if ok && skipped < maxTrailing && binary.LittleEndian.Uint32(h) == 0 {
			at += 8 // between containers there is padding
			skipped += 8
			continue
		}
		next, whole := w.header(h, at, s.end)
		if !ok || !whole {
			w.stop(at)
			return
		}
		first := at + int64(binary.LittleEndian.Uint16(h[6:]))
		if !w.container(first, next) {
			return
		}
		at, skipped = next, 0
	}
}

// header returns where the container of a header ends.
func (w *walk) header(h []byte, at, end int64) (int64, bool) {
	long := int64(binary.LittleEndian.Uint16(h[6:]))
	size := binary.LittleEndian.Uint64(h[8:])
	if binary.LittleEndian.Uint32(h) != magic || long < headerSize || long > end-at || size > uint64(end-at-long) {
		return 0, false
	}
	return at + long + int64(size), true
}

// container notes the targets of the entries from at to end.
func (w *walk) container(at, end int64) bool {
	var had []Target
	for at+entrySize <= end {
		e, ok := w.read(at, entrySize)
		long, size := int64(binary.LittleEndian.Uint32(e[4:])), binary.LittleEndian.Uint64(e[8:])
		if w.entries++; !ok || long < entrySize || long > end-at || size > uint64(end-at-long) || w.entries > maxEntries {
			w.stop(at)
			return false
		}
		if t, version, ok := target(e); ok && !slices.Contains(had, t) {
			had = append(had, t)
			w.seen[t]++
			w.note(t, version)
		}
		at += long + int64(size)
	}
	w.done++
	return true
}

// note keeps the newest version of the PTX language that a target is written in.
func (w *walk) note(t Target, version [2]int) {
	if known := w.versions[t]; slices.Compare(version[:], known[:]) > 0 {
		w.versions[t] = version
	}
}

func (w *walk) stop(at int64) {
	if w.broken == 0 {
		w.broken = at
	}
}

// target reads what the entry of a header is for, and the version of the PTX language where it is PTX.
func target(e []byte) (Target, [2]int, bool) {
	flags := binary.LittleEndian.Uint64(e[40:])
	var version [2]int
	t := Target{SM: int(binary.LittleEndian.Uint32(e[28:]) & 0xffff), Exact: flags&flagArch != 0 && flags&flagFamily == 0}
	switch binary.LittleEndian.Uint16(e) {
	case kindPTX:
		t.PTX = true
		version = [2]int{int(binary.LittleEndian.Uint16(e[26:])), int(binary.LittleEndian.Uint16(e[24:]))}
	case kindCubin:
	default:
		return t, version, false // NVVM code for link-time optimization, and the like
	}
	return t, version, t.SM > 0
}

func (w *walk) code() *Code {
	c := &Code{Containers: w.done, More: w.more, Broken: w.broken}
	seen := slices.Collect(maps.Keys(w.seen))
	sorting.By(seen, order)
	for _, t := range seen {
		c.Rows = append(c.Rows, Row{Target: t, Containers: w.seen[t], Version: w.versions[t]})
	}
	return c
}

func order(a, b Target) int {
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return cmp.Or(flag(a.PTX)-flag(b.PTX), a.SM-b.SM, flag(a.Exact)-flag(b.Exact))
}
