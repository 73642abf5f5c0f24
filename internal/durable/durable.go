// Package durable writes files and folders that are there whole or not at all.
//
// Content is written beside its destination, forced to the disk and renamed over
// it. A failure, of the disk or of the writer, removes what was written and
// leaves the destination as it was. After a crash of the machine the destination
// holds the old content or the new; a leftover beside it is named .warpline-*.tmp.
package durable

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// What names beside a destination begin and end with.
const (
	tempPrefix = ".warpline-"
	tempSuffix = ".tmp"
)

// bufferSize keeps small writes, as of headers and log lines, from being system calls.
const bufferSize = 64 << 10

// Through, which only tests set, stands between what is written for a destination and the disk, to be a disk that is full.
var Through func(path string, disk io.Writer) io.Writer

// Error is the failure of a write: of which destination, and why.
// errors.Is finds the cause (syscall.ENOSPC, fs.ErrPermission, fs.ErrExist).
type Error struct {
	Path string // the destination
	Err  error  // the cause
	temp string // the name beside Path, of no interest to a reader
}

// Error names the destination in place of the temporary name beside it.
func (e *Error) Error() string {
	msg := e.Err.Error()
	if e.temp != "" && strings.Contains(msg, e.temp) {
		return strings.ReplaceAll(msg, e.temp, e.Path)
	}
	return "write " + e.Path + ": " + msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WriteFile gives path the content that write writes. The file keeps the
// permissions of the one it replaces; a symbolic link is followed; what is not a
// regular file (a device, a folder) is refused. The error is an [*Error].
//
// An error that says the folder could not be forced to the disk is the one that
// comes after the new content is in place.
func WriteFile(path string, write func(w io.Writer) error) error {
	target, perm, err := destination(path)
	if err != nil {
		return &Error{Path: path, Err: err}
	}
	temp := tempName(target)
	defer os.Remove(temp) // fails once renamed; runs on a panic of write too
	if err := fill(temp, target, perm, write); err != nil {
		return &Error{Path: path, Err: err, temp: temp}
	}
	return publish(temp, target, path)
}

// WriteDir makes the folder path with what fill puts into the folder it is
// given, which is beside path and bears its name only when fill succeeded. An
// existing path is an error (fs.ErrExist). The error is an [*Error].
func WriteDir(path string, fill func(dir string) error) error {
	path = filepath.Clean(path)
	if err := absent(path); err != nil {
		return &Error{Path: path, Err: err}
	}
	temp, err := fillDir(path, fill)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) // gone once renamed
	return publish(temp, path, path)
}

// ReplaceDir is [WriteDir], but a folder that exists at path makes way once the
// new one is complete, and comes back should the change of names fail. The
// change is two renames: a crash of the machine between them leaves the old
// folder under a name .warpline-*.tmp beside path.
func ReplaceDir(path string, fill func(dir string) error) error {
	path = filepath.Clean(path)
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return &Error{Path: path, Err: errors.New("not a folder")}
	}
	temp, err := fillDir(path, fill)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	return swap(temp, path)
}

// swap gives the folder temp the name path and removes what had it before.
func swap(temp, path string) error {
	old := tempName(path)
	switch err := rename(path, old); {
	case errors.Is(err, fs.ErrNotExist):
		return publish(temp, path, path)
	case err != nil:
		return &Error{Path: path, Err: err}
	}
	err := publish(temp, path, path)
	if absent(path) == nil { // the new folder did not get the name
		if undo := rename(old, path); undo != nil {
			return fmt.Errorf("%w; the folder that was there is now %s: %w", err, old, undo)
		}
		return err
	}
	if left := os.RemoveAll(old); err == nil && left != nil {
		return &Error{Path: path, Err: fmt.Errorf("in place, but the folder before it is left: %w", left)}
	}
	return err
}

// fillDir returns the name of a folder beside path, complete and on the disk.
func fillDir(path string, fill func(dir string) error) (string, error) {
	temp, done := tempName(path), false
	defer func() {
		if !done { // an error, or a panic of fill
			os.RemoveAll(temp)
		}
	}()
	err := os.Mkdir(temp, 0o777)
	if err == nil {
		err = fill(temp)
	}
	if err == nil {
		err = syncTree(temp)
	}
	if err != nil {
		return "", &Error{Path: path, Err: err, temp: temp}
	}
	done = true
	return temp, nil
}

// destination returns the file to replace, links followed, and its permissions.
func destination(path string) (string, fs.FileMode, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, 0, nil
	case err != nil:
		return "", 0, pathCause(err)
	case !info.Mode().IsRegular():
		return "", 0, fmt.Errorf("not a regular file but %s", kind(info.Mode()))
	}
	target, err := filepath.EvalSymlinks(path)
	return target, info.Mode().Perm(), err
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "a device"
}

// Sweep removes what writes that a crash cut off have left in the folder dir. Nothing may be writing there.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return err
}

func absent(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	return nil
}

// tempName returns a fresh name in the folder of path, so that the rename stays
// within one file system.
func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), tempPrefix+strings.ToLower(rand.Text()[:16])+tempSuffix)
}

// fill creates temp, for target, with the permissions perm unless 0, and forces it to the disk.
func fill(temp, target string, perm fs.FileMode, write func(w io.Writer) error) error {
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer f.Close() // a second Close is harmless; an open file could not be removed on Windows
	if perm != 0 {
		if err := f.Chmod(perm); err != nil {
			return err
		}
	}
	var disk io.Writer = f
	if Through != nil {
		disk = Through(target, f)
	}
	buf := bufio.NewWriterSize(disk, bufferSize)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// publish renames temp to target and forces their folder to the disk.
func publish(temp, target, path string) error {
	if err := rename(temp, target); err != nil {
		return &Error{Path: path, Err: err}
	}
	if err := syncDir(filepath.Dir(target)); err != nil {
		return &Error{Path: path, Err: fmt.Errorf("in place, but its folder could not be forced to the disk: %w", pathCause(err))}
	}
	return nil
}

// syncTree forces every file and folder under dir to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return syncDir(path)
		case d.Type().IsRegular():
			return syncFile(path)
		}
		return nil
	})
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, syncFlag, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// pathCause strips the operation and the names that os puts before a cause.
func pathCause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
