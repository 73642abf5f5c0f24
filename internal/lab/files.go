package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/web"
)

// files are those that people dropped on a page, each by what it contains, and those that the lab brings along.
type files struct {
	dir     string
	builtin map[string]string // by name, the path
}

// unpack writes the kernels that the lab brings along into a folder, where commands read them.
func (f *files) unpack(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f.builtin = map[string]string{}
	list, err := fs.ReadDir(kernels, ".")
	for _, e := range list {
		text, failed := fs.ReadFile(kernels, e.Name())
		f.builtin[e.Name()] = filepath.Join(dir, e.Name())
		err = errors.Join(err, failed, os.WriteFile(f.builtin[e.Name()], text, 0o600))
	}
	return err
}

// mostFile is how large a file may be, and mostFiles how many are kept: the oldest go.
const (
	mostFile  = 1 << 30
	mostFiles = 16
)

// named is what an address of a file looks like: a hash, and an ending that tells commands what it is.
var named = regexp.MustCompile(`^[0-9a-f]{32}(\.[a-z0-9]{1,8}){0,3}$`)

// path is where a file is. Names that lead anywhere else are refused.
func (f *files) path(name string) (string, error) {
	if at, ok := f.builtin[name]; ok {
		return at, nil
	}
	if !named.MatchString(name) {
		return "", advice.Failf("drop the file on the page first", "there is no file %.100q", name)
	}
	at := filepath.Join(f.dir, name)
	if _, err := os.Stat(at); err != nil {
		return "", advice.Failf("drop the file on the page again", "the file %s is there no more", name)
	}
	return at, nil
}

// ending is the end of a name that people gave, as far as it is plain.
func ending(name string) string {
	base := strings.ToLower(filepath.Base(name))
	parts := strings.Split(base, ".")[1:]
	parts = parts[max(0, len(parts)-2):]
	end := ""
	for _, p := range parts {
		end += "." + p
	}
	if !named.MatchString(strings.Repeat("0", 32) + end) {
		return ""
	}
	return end
}

// put keeps a file that a page sends, and tells its name.
func (f *files) put(w http.ResponseWriter, r *http.Request) {
	name, err := f.keep(r.Body, ending(r.URL.Query().Get("name")))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		web.Refuse(w, http.StatusRequestEntityTooLarge, advice.Failf("files of up to 1 GiB are taken", "the file is too large"))
	case err != nil:
		web.Refuse(w, http.StatusInternalServerError, advice.Failf("make room in "+f.dir, "the file cannot be kept: %v", err))
	default:
		web.Send(w, http.StatusOK, map[string]string{"file": name})
	}
}

func (f *files) keep(from io.Reader, end string) (name string, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", err
	}
	to, err := os.CreateTemp(f.dir, "new-")
	if err != nil {
		return "", err
	}
	defer os.Remove(to.Name()) // nothing, once it is renamed
	sum := sha256.New()
	if _, err = io.Copy(io.MultiWriter(to, sum), from); err != nil {
		to.Close()
		return "", err
	}
	if err := to.Close(); err != nil {
		return "", err
	}
	name = hex.EncodeToString(sum.Sum(nil)[:16]) + end
	if err := os.Rename(to.Name(), filepath.Join(f.dir, name)); err != nil {
		return "", err
	}
	return name, f.shed(name)
}

// shed removes the oldest files of those that are too many.
func (f *files) shed(keep string) error {
	list, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	type dated struct {
		name string
		at   int64
	}
	var all []dated
	for _, e := range list {
		if info, err := e.Info(); err == nil && named.MatchString(e.Name()) && e.Name() != keep {
			all = append(all, dated{e.Name(), info.ModTime().UnixNano()})
		}
	}
	sorting.By(all, func(a, b dated) int { return int(min(max(a.at-b.at, -1), 1)) })
	for len(all) >= mostFiles {
		if err := os.Remove(filepath.Join(f.dir, all[0].name)); err != nil {
			return err
		}
		all = all[1:]
	}
	return nil
}
