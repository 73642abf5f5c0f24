package probe

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// tree is a file system with its root somewhere: the machine's, or one that a test has planted.
type tree struct{ root string }

func (t tree) path(name string) string { return filepath.Join("/", t.root, name) }

// most is how much of a file is read: those of the system are small.
const most = 1 << 20

// read is the content of a file without spaces around it, "" of one that cannot be read.
func (t tree) read(name string) string {
	f, err := os.Open(t.path(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, most)) // files of the system may end in an error
	return string(bytes.ToValidUTF8(bytes.TrimSpace(b), []byte("?")))
}

// number is that in a file, in any base.
func (t tree) number(name string) (n int64, ok bool) {
	v, err := strconv.ParseInt(t.read(name), 0, 64)
	return v, err == nil
}

// int is number, or 0.
func (t tree) int(name string) int {
	n, _ := t.number(name)
	return int(n)
}

// list is the names in a folder, none of one that cannot be read.
func (t tree) list(name string) (names []string) {
	entries, _ := os.ReadDir(t.path(name))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// there reports whether a name exists.
func (t tree) there(name string) bool {
	_, err := os.Stat(t.path(name))
	return err == nil
}

// link is where a symbolic link leads, as it is written; "" of what is none.
func (t tree) link(name string) string {
	to, _ := os.Readlink(t.path(name))
	return filepath.ToSlash(to)
}

// real is a name with all symbolic links followed within the tree, or the name itself.
func (t tree) real(name string) string {
	for range 16 {
		to, err := os.Readlink(t.path(name))
		if err != nil {
			return name
		}
		if !strings.HasPrefix(to, "/") {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = filepath.ToSlash(to)
	}
	return name
}

// fields of a file of lines "name: value".
func colons(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, v, ok := strings.Cut(line, ":"); ok {
			out[strings.TrimSpace(name)] = strings.TrimSpace(v)
		}
	}
	return out
}

// errno is the name of a system's error, "" of none.
func errno(err error) string {
	var e syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		if name := errnoNames[e]; name != "" {
			return name
		}
		return "errno " + strconv.Itoa(int(e))
	case errors.Is(err, fs.ErrNotExist):
		return "ENOENT"
	case errors.Is(err, fs.ErrPermission):
		return "EACCES"
	}
	return err.Error()
}

// errnoNames are those that nodes and files give.
var errnoNames = map[syscall.Errno]string{syscall.EPERM: "EPERM", syscall.ENOENT: "ENOENT", syscall.EIO: "EIO", syscall.ENXIO: "ENXIO", syscall.EACCES: "EACCES",
	syscall.EBUSY: "EBUSY", syscall.ENODEV: "ENODEV", syscall.EINVAL: "EINVAL", syscall.ENOTTY: "ENOTTY", syscall.ENOSPC: "ENOSPC", syscall.EROFS: "EROFS",
	syscall.ENOMEM: "ENOMEM", syscall.EAGAIN: "EAGAIN", syscall.ENOTDIR: "ENOTDIR", syscall.EMFILE: "EMFILE", syscall.ENOSYS: "ENOSYS"}
