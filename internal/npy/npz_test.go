package npy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

func open(data []byte, limit int64) (*Archive, error) {
	return OpenZip(bytes.NewReader(data), int64(len(data)), limit)
}

func TestZipNumPy(t *testing.T) {
	for _, name := range []string{"stored.npz", "deflated.npz"} {
		a, err := open(read(t, name), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Names(); !slices.Equal(got, []string{"images", "labels"}) {
			t.Errorf("%s: names %v", name, got)
		}
		for member, want := range map[string]*Array{"images": elements("|u1", 2, 1, 3, 3), "labels": elements("<i8", 2)} {
			if got, err := a.Array(member); err != nil || !equal(got, want) {
				t.Errorf("%s: %s is %+v, %v; want %+v", name, member, got, err, want)
			}
		}
	}
}

func TestZipRoundTrip(t *testing.T) {
	members := []Member{{"b", elements("<f4", 300, 7)}, {"a/ü", elements("|u1")}, {"empty", elements("<i8", 0)}}
	for _, compress := range []bool{false, true} {
		var first, second bytes.Buffer
		if err := errors.Join(WriteZip(&first, members, compress), WriteZip(&second, members, compress)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("two writes differ")
		}
		a, err := open(first.Bytes(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Names(); !slices.Equal(got, []string{"b", "a/ü", "empty"}) {
			t.Errorf("names %q", got)
		}
		for _, m := range members {
			if got, err := a.Array(m.Name); err != nil || !equal(got, m.Array) {
				t.Errorf("%s: got %+v, %v; want %+v", m.Name, got, err, m.Array)
			}
		}
	}
}

// member is a raw entry of an archive, whatever it claims.
type member struct {
	name       string
	method     uint16
	data       string // as it is in the archive
	claim, crc uint64 // of the uncompressed form
}

// archive writes the members with the sizes and checksums they claim.
func archive(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		w, err := z.CreateRaw(&zip.FileHeader{
			Name: m.name, Method: m.method, CRC32: uint32(m.crc),
			CompressedSize64: uint64(len(m.data)), UncompressedSize64: m.claim,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// deflated returns the compressed form of s.
func deflated(t testing.TB, s string) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	at, err := r.File[0].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	return string(out.Bytes()[at : at+int64(r.File[0].CompressedSize64)])
}

func TestZipHostile(t *testing.T) {
	const store, deflate = zip.Store, zip.Deflate
	good := string(read(t, "vector.npy"))
	sum := uint64(crc32.ChecksumIEEE([]byte(good)))
	size := uint64(len(good))
	packed := deflated(t, good)
	stored := read(t, "stored.npz")
	const limit = 1 << 20
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "truncated, or not an archive"},
		{[]byte(good), "truncated, or not an archive"},
		{stored[:len(stored)-1], "truncated, or not an archive"},
		{stored[:len(stored)/2], "truncated, or not an archive"},
		{archive(t), `no array "x"`},
		{archive(t, member{name: "y.npy", data: good, claim: size, crc: sum}), `no array "x"; there are "y"`},
		{archive(t, member{name: "x", data: good, claim: size, crc: sum}), `no array "x"`},
		{archive(t, member{name: "x.npy", data: good, claim: size, crc: sum}, member{name: "x.npy", data: good, claim: size, crc: sum}), `two arrays are named "x"`},
		{archive(t, member{name: "x.npy", method: 12, data: good, claim: size, crc: sum}), "compression method 12"},
		{archive(t, member{name: "x.npy", method: store, data: good, claim: size - 1, crc: sum}), fmt.Sprintf("stored, but of %d bytes in %d", size-1, size)},
		{archive(t, member{name: "x.npy", method: store, data: good, claim: size, crc: sum + 1}), "checksum"},
		{archive(t, member{name: "x.npy", method: deflate, data: packed, claim: size, crc: sum + 1}), "checksum"},
		{archive(t, member{name: "x.npy", method: deflate, data: packed, claim: size - 1, crc: sum}), "unpacking its 183 bytes: zip: not a valid"},
		{archive(t, member{name: "x.npy", method: deflate, data: packed, claim: size + 1, crc: sum}), "unpacking its 185 bytes: unexpected EOF"},
		{archive(t, member{name: "x.npy", method: deflate, data: "\xff\xff\xff", claim: size, crc: sum}), "corrupt input"},
		{archive(t, member{name: "x.npy", method: deflate, data: packed, claim: 1 << 40, crc: sum}), "more than deflate can"},
		{archive(t, member{name: "x.npy", method: deflate, data: packed, claim: 1<<64 - 1, crc: sum}), "more than deflate can"},
		{archive(t, member{name: "x.npy", method: deflate, data: deflated(t, strings.Repeat("\x00", limit+1)), claim: limit + 1}), "more than the limit of 1048576"},
		{archive(t, member{name: "y.npy", method: deflate, data: deflated(t, strings.Repeat("\x00", limit)), claim: limit}, member{name: "x.npy", data: good, claim: size, crc: sum}), `array "x" takes 184 bytes, and all up to it more than the limit`},
		{archive(t, member{name: "x.npy", data: "junk", claim: 4, crc: uint64(crc32.ChecksumIEEE([]byte("junk")))}), `array "x": does not start with`},
	} {
		a, err := open(c.data, limit)
		if err == nil {
			_, err = a.Array("x")
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, c.want)
		}
	}
}

func TestWriteZipRefuses(t *testing.T) {
	a := elements("<f4", 2)
	for _, c := range []struct {
		members []Member
		want    string
	}{
		{[]Member{{"x", a}, {"x", a}}, `array name "x" is empty or given twice`},
		{[]Member{{"", a}}, `array name "" is empty`},
		{[]Member{{"x", &Array{"<f4", []int{3}, nil}}}, `array "x": <f4 of shape [3] takes 12 bytes, got 0`},
	} {
		var out bytes.Buffer
		if err := WriteZip(&out, c.members, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", err, c.want)
		}
	}
	for n := int64(0); n < 250; n += 50 {
		if err := WriteZip(&testutil.FailingWriter{N: n}, []Member{{"x", a}}, true); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a disk full after %d bytes gives %v", n, err)
		}
	}
}

// FuzzOpenZip mutates whole archives.
func FuzzOpenZip(f *testing.F) {
	f.Add(read(f, "stored.npz"))
	f.Add(read(f, "deflated.npz"))
	f.Add(archive(f, member{name: "x.npy", data: "junk", claim: 4}))
	f.Fuzz(checkArchive)
}

// FuzzMember mutates a member of an archive whose directory is sound.
func FuzzMember(f *testing.F) {
	good := string(read(f, "vector.npy"))
	sum := uint32(crc32.ChecksumIEEE([]byte(good)))
	f.Add(good, uint16(zip.Store), uint64(len(good)), sum)
	f.Add(deflated(f, good), uint16(zip.Deflate), uint64(len(good)), sum)
	f.Fuzz(func(t *testing.T, data string, method uint16, claim uint64, sum uint32) {
		checkArchive(t, archive(t, member{name: "x.npy", method: method, data: data, claim: claim, crc: uint64(sum)}))
	})
}

// checkArchive demands of every array that can be read that it can be written
// and read again.
func checkArchive(t *testing.T, data []byte) {
	a, err := open(data, 1<<20)
	if err != nil {
		return
	}
	for _, name := range a.Names() {
		if array, err := a.Array(name); err == nil {
			checkStable(t, array)
		}
	}
}
