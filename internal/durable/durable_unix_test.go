//go:build !windows

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Windows has neither these permissions nor links without a privilege.
func TestWriteFileKeepsPermissionsAndLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Chmod(target, 0o640)); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, text("new")); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "link=new target=new")
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions became %v, %v", info.Mode(), err)
	}
}
