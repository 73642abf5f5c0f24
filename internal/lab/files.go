package lab

import (
	"cmp"
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
	"time"

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
	name, came, err := f.keep(r.Body, ending(r.URL.Query().Get("name")))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		web.Refuse(w, http.StatusRequestEntityTooLarge, advice.Failf("files of up to 1 GiB are taken", "the file is too large"))
	case errors.Is(err, io.ErrUnexpectedEOF):
		web.Refuse(w, http.StatusBadRequest, advice.Failf("drop it again", "the file did not come as a whole: it ended after %d bytes", came))
	case err != nil:
		web.Refuse(w, http.StatusInternalServerError, advice.Failf("make room in "+f.dir+", or start warpline lab with another --dir", "the file cannot be kept, after %d bytes of it: %v", came, err))
	default:
		web.Send(w, http.StatusOK, map[string]string{"file": name})
	}
}

// partial is how the names of files begin that have not come as a whole yet.
const partial = "new-"

// keep keeps a file as a whole or not at all, and tells how much of it has come.
func (f *files) keep(from io.Reader, end string) (name string, came int64, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", 0, err
	}
	to, err := os.CreateTemp(f.dir, partial)
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(to.Name()) // nothing, once it is renamed
	sum := sha256.New()
	came, err = io.Copy(io.MultiWriter(to, sum), from)
	if err := errors.Join(err, to.Close()); err != nil {
		return "", came, err
	}
	name = hex.EncodeToString(sum.Sum(nil)[:16]) + end
	if err := os.Rename(to.Name(), filepath.Join(f.dir, name)); err != nil {
		return "", came, err
	}
	return name, came, f.shed(name)
}

// abandoned is how long nothing comes of a file whose lab has been ended meanwhile.
const abandoned = time.Hour

// shed removes the oldest files of those that are too many, and what is left of those that never came as a whole.
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
	var gone []string
	for _, e := range list {
		info, err := e.Info()
		switch {
		case err != nil: // another page's request has removed it
		case strings.HasPrefix(e.Name(), partial) && time.Since(info.ModTime()) > abandoned:
			gone = append(gone, e.Name())
		case named.MatchString(e.Name()) && e.Name() != keep:
			all = append(all, dated{e.Name(), info.ModTime().UnixNano()})
		}
	}
	sorting.By(all, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	for _, old := range all[:max(0, len(all)+1-mostFiles)] {
		gone = append(gone, old.name)
	}
	for _, name := range gone {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
