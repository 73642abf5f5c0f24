package npy

import (
	"archive/zip"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/claim"
)

const suffix = ".npy"

// Archive is an open .npz archive: named arrays, read one by one.
// It may be used by several goroutines at once.
type Archive struct {
	names   []string
	members map[string]*zip.File
}

// OpenZip reads the directory of an .npz archive of size bytes. Its arrays,
// uncompressed, may take limit bytes together: an archive that claims more is
// refused as a decompression bomb. Members that are not .npy files are ignored.
func OpenZip(r io.ReaderAt, size, limit int64) (*Archive, error) {
	a, err := openZip(r, size, limit)
	if err != nil {
		return nil, fmt.Errorf("npz: %w", err)
	}
	return a, nil
}

func openZip(r io.ReaderAt, size, limit int64) (*Archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%d bytes: %w: truncated, or not an archive", size, err)
	}
	a := &Archive{members: map[string]*zip.File{}}
	left := uint64(max(limit, 0))
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, suffix)
		if !ok {
			continue
		}
		if a.members[name] != nil {
			return nil, fmt.Errorf("two arrays are named %s", claim.Quote(name))
		}
		if err := checkClaim(f, size); err != nil {
			return nil, fmt.Errorf("array %s: %w", claim.Quote(name), err)
		}
		if f.UncompressedSize64 > left {
			return nil, fmt.Errorf("array %s takes %d bytes, and all up to it more than the limit of %d", claim.Quote(name), f.UncompressedSize64, limit)
		}
		left -= f.UncompressedSize64
		a.members[name] = f
		a.names = append(a.names, name)
	}
	return a, nil
}

// checkClaim compares a member's two sizes with each other and with the
// archive's; nothing is allocated yet.
func checkClaim(f *zip.File, archive int64) error {
	packed, claimed := f.CompressedSize64, f.UncompressedSize64
	switch {
	case packed > uint64(archive):
		return fmt.Errorf("claims %d bytes of an archive of %d", packed, archive)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Errorf("compression method %d is not stored (0) or deflate (8)", f.Method)
	case f.Method == zip.Store && claimed != packed:
		return fmt.Errorf("stored, but of %d bytes in %d", claimed, packed)
	case claimed > math.MaxInt, !claim.Inflates(packed, claimed):
		return fmt.Errorf("claims to unpack %d bytes to %d, more than deflate can", packed, claimed)
	}
	return nil
}

// Names returns the arrays' names, without .npy, in the order of the archive.
func (a *Archive) Names() []string { return slices.Clone(a.names) }

// Array reads an array by name.
func (a *Archive) Array(name string) (*Array, error) {
	f := a.members[name]
	if f == nil {
		return nil, fmt.Errorf("npz: no array %s; there are %s", claim.Quote(name), claim.Quote(strings.Join(a.names, ", ")))
	}
	data, err := unpack(f)
	if err != nil {
		return nil, fmt.Errorf("npz: array %s: %w", claim.Quote(name), err)
	}
	array, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("npz: array %s: %w", claim.Quote(name), err)
	}
	return array, nil
}

// unpack returns a member's content, which must be of the size it claims.
func unpack(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, f.UncompressedSize64)
	if _, err = io.ReadFull(r, data); err == nil {
		// The end, where size and checksum are verified, is one read away.
		if _, err = io.ReadFull(r, make([]byte, 1)); err == io.EOF {
			return data, nil
		}
	}
	return nil, fmt.Errorf("unpacking its %d bytes: %w", len(data), cmp.Or(err, zip.ErrFormat))
}

// Member is an array to write into an archive.
type Member struct {
	Name string // without .npy
	*Array
}

// WriteZip writes an .npz archive: the same bytes for the same arrays.
func WriteZip(w io.Writer, members []Member, compress bool) error {
	if err := writeZip(w, members, compress); err != nil {
		return fmt.Errorf("npz: %w", err)
	}
	return nil
}

func writeZip(w io.Writer, members []Member, compress bool) error {
	z := zip.NewWriter(w)
	method := zip.Store
	if compress {
		method = zip.Deflate
	}
	seen := map[string]bool{}
	for _, m := range members {
		if m.Name == "" || seen[m.Name] {
			return fmt.Errorf("array name %s is empty or given twice", claim.Quote(m.Name))
		}
		seen[m.Name] = true
		f, err := z.CreateHeader(&zip.FileHeader{Name: m.Name + suffix, Method: method})
		if err != nil {
			return err
		}
		if err := write(f, m.Array); err != nil {
			return fmt.Errorf("array %s: %w", claim.Quote(m.Name), err)
		}
	}
	return z.Close()
}
