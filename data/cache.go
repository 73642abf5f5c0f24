package data

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/tensor"
)

// cached is the source of [Cache].
type cached[B any] struct {
	Source[B]
	kept []atomic.Pointer[[]byte]
}

// Cache is a source whose samples are read once and kept in memory. What a sample draws from Rand it draws once, by its number, the
// same whichever batch reads it first: put random changes above the cache. A batch type with fields beside its tensors cannot be kept
// and is a mistake, which panics with a [tensor.Error].
func Cache[B any](src Source[B]) Source[B] {
	onlyTensors[B]("data.Cache")
	return &cached[B]{src, make([]atomic.Pointer[[]byte], src.Len())}
}

// onlyTensors refuses batch types that hold more than bytes of tensors.
func onlyTensors[B any](op string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[B]()) {
		if f.IsExported() && !f.Anonymous && len(f.Index) == 1 && f.Type != tensorType && f.Type != namedType {
			tensor.Raise(op, "keep what is beside the tensors in a source above it", "%v has the field %s, which a cache does not keep", reflect.TypeFor[B](), f.Name)
		}
	}
}

func (c *cached[B]) Fill(b *B, row Row, i int) error {
	if kept := c.kept[i].Load(); kept != nil {
		return row.load(*kept)
	}
	if err := c.Source.Fill(b, row.apart(i), i); err != nil {
		return err
	}
	kept := row.save(nil)
	c.kept[i].Store(&kept)
	return nil
}

func (c *cached[B]) String() string { return fmt.Sprintf("(%v), kept in memory", c.Source) }

// apart is the row, with the draws that sample i has where no epoch reads it.
func (r Row) apart(i int) Row { return Row{r.columns, r.at, keptKey, uint64(i)} }

// save appends the row's values.
func (r Row) save(b []byte) []byte {
	for _, c := range r.columns {
		b = c.appendRow(b, r.at)
	}
	return b
}

var errForeign = errors.New("the kept sample is of other fields")

// load is the inverse of save.
func (r Row) load(b []byte) error {
	ok := true
	for _, c := range r.columns {
		if b, ok = c.setRow(b, r.at); !ok {
			return errForeign
		}
	}
	if len(b) > 0 {
		return errForeign
	}
	return nil
}

// Cached is a source whose samples are in a file. It may be used by several goroutines at once.
type Cached[B any] struct {
	src   Source[B] // what it was made of: its fields and length
	path  string
	file  *hostmem.File
	index []byte // of n+1 positions
}

// The file: samples, each with its CRC-32C behind it; the n+1 positions where they begin and end, and their CRC-32C; and a tail, which
// has the key, the position of the positions, n and the magic word. Numbers are little-endian.
const (
	cacheMagic = "wl-kept1"
	tailSize   = sha256.Size + 8 + 8 + len(cacheMagic)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CacheDir is [Cache] in a file of the folder dir, which it makes in one pass over src unless it is there. The file's name comes from
// what it holds: the number of samples, their fields, 64 of them spread over the set, and name, which tells sets apart of which only
// other samples differ. The file is written beside and renamed; one that is cut or damaged is made again, and one whose samples are
// damaged later is an error where they are read. Close it when no loader reads it any more.
func CacheDir[B any](src Source[B], dir, name string) (*Cached[B], error) {
	onlyTensors[B]("data.CacheDir")
	key, err := contentKey(src, name)
	if err != nil {
		return nil, err
	}
	c := &Cached[B]{src: src, path: filepath.Join(dir, "samples-"+hex.EncodeToString(key[:8])+".kept")}
	if c.open(key) == nil {
		return c, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := durable.WriteFile(c.path, func(w io.Writer) error { return writeCache(w, src, key) }); err != nil {
		return nil, err
	}
	if err := c.open(key); err != nil {
		return nil, fmt.Errorf("%s, just written: %w", c.path, err)
	}
	return c, nil
}

// probes is how many samples a key looks at.
const probes = 64

// contentKey is what tells a set from others.
func contentKey[B any](src Source[B], name string) (key [sha256.Size]byte, err error) {
	n, h := src.Len(), sha256.New()
	fmt.Fprintf(h, "%s\n%q\n%d\n", cacheMagic, name, n)
	for _, f := range src.Fields() {
		fmt.Fprintf(h, "%s %v %q %v\n", f.DType, f.Shape, f.Name, f.Pad)
	}
	some := make([]int, min(n, probes))
	for k := range some {
		some[k] = k * (n - 1) / max(len(some)-1, 1)
	}
	err = scan(Select(src, some), func(_ *slot[B], row Row, _ int) error {
		_, err := h.Write(row.save(nil))
		return err
	})
	return [sha256.Size]byte(h.Sum(nil)), err
}

func writeCache[B any](w io.Writer, src Source[B], key [sha256.Size]byte) error {
	out := bufio.NewWriterSize(w, 1<<20)
	at, index := uint64(0), binary.LittleEndian.AppendUint64(nil, 0)
	var b []byte
	err := scan(src, func(_ *slot[B], row Row, _ int) error {
		b = row.save(b[:0])
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		at += uint64(len(b))
		index = binary.LittleEndian.AppendUint64(index, at)
		_, err := out.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	n := len(index)/8 - 1
	index = binary.LittleEndian.AppendUint32(index, crc32.Checksum(index, castagnoli))
	index = append(index, key[:]...)
	index = binary.LittleEndian.AppendUint64(index, at)
	index = binary.LittleEndian.AppendUint64(index, uint64(n))
	if _, err := out.Write(append(index, cacheMagic...)); err != nil {
		return err
	}
	return out.Flush()
}

// open maps the file, and judges all of it but the samples.
func (c *Cached[B]) open(key [sha256.Size]byte) error {
	f, err := hostmem.MapFile(c.path)
	if err != nil {
		return err
	}
	if c.index, err = cacheIndex(f.Bytes(), key, c.src.Len()); err != nil {
		f.Close()
		return err
	}
	c.file = f
	return nil
}

// cacheIndex is the positions of the n samples of a file.
func cacheIndex(raw []byte, key [sha256.Size]byte, n int) ([]byte, error) {
	le := binary.LittleEndian
	if len(raw) < tailSize {
		return nil, fmt.Errorf("%d bytes are no samples", len(raw))
	}
	body, tail := raw[:len(raw)-tailSize], raw[len(raw)-tailSize:]
	at, count := le.Uint64(tail[sha256.Size:]), le.Uint64(tail[sha256.Size+8:])
	switch {
	case string(tail[tailSize-len(cacheMagic):]) != cacheMagic || !bytes.Equal(tail[:sha256.Size], key[:]) || count != uint64(n):
		return nil, errors.New("the tail is not that of these samples")
	case at > uint64(len(body)) || uint64(len(body))-at != 8*(count+1)+4:
		return nil, errors.New("the positions are not where the tail says")
	}
	index, sum := body[at:len(body)-4], le.Uint32(body[len(body)-4:])
	if crc32.Checksum(index, castagnoli) != sum {
		return nil, errors.New("the positions are damaged")
	}
	last := uint64(0)
	for k := range n + 1 {
		p := le.Uint64(index[8*k:])
		if p < last || p > at || k > 0 && p-last < 4 {
			return nil, fmt.Errorf("sample %d ends at byte %d", k-1, p)
		}
		last = p
	}
	return index, nil
}

// Path is where the file is.
func (c *Cached[B]) Path() string { return c.path }

// Close unmaps the file.
func (c *Cached[B]) Close() error { return c.file.Close() }

// Len implements [Source].
func (c *Cached[B]) Len() int { return c.src.Len() }

// Fields implements [Source].
func (c *Cached[B]) Fields() []Field { return c.src.Fields() }

// Fill implements [Source].
func (c *Cached[B]) Fill(_ *B, row Row, i int) error {
	le := binary.LittleEndian
	b := c.file.Bytes()[le.Uint64(c.index[8*i:]):le.Uint64(c.index[8*i+8:])]
	b, sum := b[:len(b)-4], le.Uint32(b[len(b)-4:])
	if crc32.Checksum(b, castagnoli) != sum {
		return fmt.Errorf("%s: sample %d is damaged; delete the file, and it is made again", c.path, i)
	}
	return row.load(b)
}

// String names the file and what it holds.
func (c *Cached[B]) String() string { return fmt.Sprintf("(%v), kept in %s", c.src, c.path) }
