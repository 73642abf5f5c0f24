package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

var errOwn = errors.New("own cause")

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// tree lists dir as "name=content" of files and "name/" of folders.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			out = append(out, filepath.ToSlash(name)+"/")
			return err
		}
		content, err := os.ReadFile(path)
		out = append(out, fmt.Sprintf("%s=%s", filepath.ToSlash(name), content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func wantTree(t *testing.T, dir, want string) {
	t.Helper()
	if got := tree(t, dir); got != want {
		t.Errorf("folder holds %q, want %q", got, want)
	}
}

// wantError demands an *Error that wraps cause and is one line with both texts and no temporary name.
func wantError(t *testing.T, err error, path string, cause error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Path != path || !errors.Is(err, cause) {
		t.Errorf("error %v of %q, want an *Error of %q with %v", err, e, path, cause)
		return
	}
	if msg := err.Error(); !strings.Contains(msg, path) || strings.Contains(msg, "\n") || strings.Contains(msg, ".warpline-") {
		t.Errorf("error %q, want one line with %q", msg, path)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	large := strings.Repeat("x", 3*bufferSize+1)
	for _, s := range []string{"", "one", large, "two"} {
		if err := WriteFile(path, text(s)); err != nil {
			t.Fatal(err)
		}
		wantTree(t, dir, "a="+s)
	}
}

func TestWriteFileFailing(t *testing.T) {
	dir := t.TempDir()
	fresh, old := filepath.Join(dir, "fresh"), filepath.Join(dir, "old")
	if err := WriteFile(old, text("before")); err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("x", 3*bufferSize)
	for _, n := range []int64{0, 1, bufferSize, 2*bufferSize + 7} {
		for _, path := range []string{fresh, old} {
			err := WriteFile(path, func(w io.Writer) error {
				return text(content)(&testutil.FailingWriter{W: w, N: n})
			})
			wantError(t, err, path, syscall.ENOSPC)
			wantTree(t, dir, "old=before")
		}
	}
	err := WriteFile(old, func(io.Writer) error { return fmt.Errorf("tensor w: %w", errOwn) })
	wantError(t, err, old, errOwn)
	if want := "write " + old + ": tensor w: own cause"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestWriteFilePanics(t *testing.T) {
	dir := t.TempDir()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of the writer is lost")
			}
		}()
		WriteFile(filepath.Join(dir, "a"), func(io.Writer) error { panic("in the writer") })
	}()
	wantTree(t, dir, "")
}

func TestWriteFileDestination(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing", "a")
	wantError(t, WriteFile(missing, text("x")), missing, fs.ErrNotExist)

	err := WriteFile(dir, text("x"))
	if want := "write " + dir + ": not a regular file but a folder"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	for mode, want := range map[fs.FileMode]string{fs.ModeDir: "a folder", fs.ModeNamedPipe: "a pipe", fs.ModeDevice: "a device"} {
		if got := kind(mode); got != want {
			t.Errorf("%v is %s, want %s", mode, got, want)
		}
	}
	under := filepath.Join(dir, "file", "a")
	if err := WriteFile(filepath.Dir(under), text("x")); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(under, text("x")); err == nil || !strings.Contains(err.Error(), under) {
		t.Errorf("below a file: %v", err)
	}
	wantTree(t, dir, "file=x")
}

// fillTwo writes two files, the second in a folder of its own.
func fillTwo(dir string) error {
	if err := WriteFile(filepath.Join(dir, "a"), text("1")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "sub", "b"), []byte("2"), 0o666)
}

func TestWriteDir(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	if err := WriteDir(path+string(filepath.Separator), fillTwo); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "d/ d/a=1 d/sub/ d/sub/b=2")

	called := false
	err := WriteDir(path, func(string) error { called = true; return nil })
	wantError(t, err, path, fs.ErrExist)
	if called {
		t.Error("filled a folder that could not get its name")
	}
	wantTree(t, dir, "d/ d/a=1 d/sub/ d/sub/b=2")
}

func TestReplaceDir(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	if err := ReplaceDir(path, func(d string) error { return WriteFile(filepath.Join(d, "old"), text("0")) }); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "d/ d/old=0")
	if err := ReplaceDir(path, fillTwo); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "d/ d/a=1 d/sub/ d/sub/b=2")
	if err := ReplaceDir(filepath.Join(path, "a"), fillTwo); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("over a file: %v", err)
	}
	wantTree(t, dir, "d/ d/a=1 d/sub/ d/sub/b=2")
}

func TestDirFailing(t *testing.T) {
	type writeDir func(string, func(string) error) error
	for name, write := range map[string]writeDir{"WriteDir": WriteDir, "ReplaceDir": ReplaceDir} {
		dir := t.TempDir()
		path := filepath.Join(dir, "d")
		before := ""
		if name == "ReplaceDir" {
			if err := WriteDir(path, fillTwo); err != nil {
				t.Fatal(err)
			}
			before = "d/ d/a=1 d/sub/ d/sub/b=2"
		}
		err := write(path, func(d string) error {
			if err := fillTwo(d); err != nil {
				return err
			}
			return WriteFile(filepath.Join(d, "c"), func(w io.Writer) error {
				return text("xyz")(&testutil.FailingWriter{W: w, N: 2})
			})
		})
		wantError(t, err, path, syscall.ENOSPC)
		if want := fmt.Sprintf("write %s: %v", filepath.Join(path, "c"), syscall.ENOSPC); err.Error() != want {
			t.Errorf("%s: error %q, want %q", name, err, want)
		}
		wantTree(t, dir, before)

		missing := filepath.Join(dir, "missing", "d")
		wantError(t, write(missing, fillTwo), missing, fs.ErrNotExist)
		func() {
			defer func() { _ = recover() }()
			_ = write(path+"2", func(string) error { panic("while filling") })
		}()
		wantTree(t, dir, before)
	}
}

// TestReplaceDirRestores takes the new folder away before it can get its name.
func TestReplaceDirRestores(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	if err := WriteDir(path, fillTwo); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(dir, "never made")
	if err := swap(temp, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	wantTree(t, dir, "d/ d/a=1 d/sub/ d/sub/b=2")
}

func TestSweepRemovesWhatACrashLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	for _, name := range []string{".warpline-abc.tmp/inner", ".warpline-keep/inner", "x.tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".warpline-def.tmp"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != ".warpline-keep" || entries[1].Name() != "x.tmp" {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := Sweep(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no folder: %v", err)
	}
}
