// Package sources has a copy of those of Warpline's sources that exercises and exported listings use, so that the go command needs
// nothing but third-party modules to build them. A release has it, packed; a build without the tag packed has none.
//
// go run ./gen -pack in internal/cuda/kernels makes it. It is what a release itself is built of: files for its system and processor,
// with kernels and tables packed, which are those of the program and not there twice. The comments of internal packages are left out;
// lines keep their numbers.
package sources

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/tables"
)

// Have reports whether this program has a copy.
func Have() bool { return packed != "" }

// Folder is where the copy lies: in the user's cache, in a folder named by its content, so that programs of one build share it and the go
// command compiles it once for all exercises. It is written, by Folder, if it is not there or not whole.
func Folder() (string, error) {
	dir, err := Place()
	if err != nil {
		return "", err
	}
	list, err := files()
	if err != nil || whole(dir, list) {
		return dir, err
	}
	if err = write(dir, list); err != nil && !whole(dir, list) { // another process may have been quicker
		return "", advice.Explain(err, elsewhere)
	}
	return dir, nil
}

// elsewhere is what to do where a copy cannot be written.
const elsewhere = "name a folder of caches that can be written, by $XDG_CACHE_HOME or what your system has in its place, or give --source DIR, a folder with Warpline's sources"

// write writes the files into a folder. One that is not whole makes way; of processes that find none the first one's stays, since a go
// command may be reading it.
func write(dir string, list map[string]string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	put := durable.WriteDir
	if _, err := os.Lstat(dir); err == nil {
		if whole(dir, list) {
			return nil
		}
		put = durable.ReplaceDir
	}
	return put(dir, func(temp string) error {
		for name, text := range list {
			path := filepath.Join(temp, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(text), mode(runtime.GOOS)); err != nil {
				return err
			}
		}
		return nil
	})
}

// mode is that of files: to be read only, but on Windows, where such a file cannot be forced to the disk.
func mode(system string) fs.FileMode {
	if system == "windows" {
		return 0o666
	}
	return 0o444
}

// Place is the folder's name, whether it is there or not.
func Place() (string, error) {
	if !Have() {
		return "", errors.ErrUnsupported
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", advice.Explain(err, elsewhere)
	}
	return filepath.Join(cache, "warpline", "sources-"+sum()), nil
}

// sum names the copy by its content.
var sum = sync.OnceValue(func() string {
	h := sha256.New()
	h.Write([]byte(packed))
	for _, name := range tables.KeptNames() {
		h.Write([]byte(tables.Kept(name)))
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
})

// files are the texts by their names.
var files = sync.OnceValues(func() (map[string]string, error) {
	list := map[string]string{}
	archive := tables.Files(packed)
	err := fs.WalkDir(archive, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(archive, name)
		if own, ok := strings.CutSuffix(name, Link); ok {
			if name, text = own, []byte(tables.Kept(own)); len(text) == 0 {
				return fmt.Errorf("%s is not in this program", own) // whose package is not linked
			}
		}
		list[name] = string(text)
		return err
	})
	return list, err
})

// Link ends names in the archive of files that the program has elsewhere.
const Link = ".link"

// whole reports whether a folder has all files, of their sizes.
func whole(dir string, list map[string]string) bool {
	for name, text := range list {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil || info.Size() != int64(len(text)) {
			return false
		}
	}
	return true
}
