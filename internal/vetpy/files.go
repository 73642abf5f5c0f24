package vetpy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/vet"
)

// IsProgram tells whether a file is a program or a notebook by its name.
func IsProgram(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".py", ".pyw", ".pyi", ".ipynb":
		return true
	}
	return false
}

// IsScript tells whether a file names Python in its first line, as programs without a suffix do.
func IsScript(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 512)).ReadString('\n') // a shorter file is none, or has no other line
	return strings.HasPrefix(line, "#!") && strings.Contains(line, "python")
}

// How long a file may be. Nobody writes a program of 16 MB; a notebook keeps its pictures.
const (
	largest         = 16 << 20
	largestNotebook = 512 << 20
)

// CheckFile reads a program or a notebook by its name.
func CheckFile(name string) ([]vet.Found, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", name)
	}
	if info.Size() > largestNotebook || info.Size() > largest && !isNotebook(name) {
		return nil, tooLong(name, info.Size())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if isNotebook(name) {
		return CheckNotebook(name, data)
	}
	return checkLinked(name, data)
}

// CheckReader reads a program or a notebook that has no name of its own.
func CheckReader(name string, r io.Reader) ([]vet.Found, error) {
	data, err := io.ReadAll(io.LimitReader(r, largestNotebook+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	notebook := bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
	if len(data) > largestNotebook || len(data) > largest && !notebook {
		return nil, tooLong(name, int64(len(data)))
	}
	if notebook {
		return CheckNotebook(name, data)
	}
	return Check(name, data)
}

func isNotebook(name string) bool { return strings.EqualFold(filepath.Ext(name), ".ipynb") }

func tooLong(name string, size int64) error {
	return fmt.Errorf("%s: %d bytes or more are no program that somebody wrote", name, size)
}
