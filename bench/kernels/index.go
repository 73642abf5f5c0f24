package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
)

// note asks for the registers of all kernels and writes them into the index in a folder.
func note(dir string) error {
	path := filepath.Join(dir, "index.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	ix, err := kernels.ParseIndex(text)
	if err != nil {
		return err
	}
	errs := make([]error, len(ix.Modules))
	slots := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i, m := range ix.Modules {
		wg.Go(func() {
			slots <- struct{}{}
			errs[i] = count(dir, m)
			<-slots
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	bare := filepath.Join(dir, "kernels.json")
	return errors.Join(os.WriteFile(path, []byte(ix.String()), 0o666), os.WriteFile(bare, []byte(ix.Bare().String()), 0o666))
}

// count notes the registers of a module's kernels.
func count(dir string, m *kernels.Module) error {
	text, err := m.Text(os.DirFS(dir))
	if err != nil {
		return err
	}
	made, err := assemble(text, strings.TrimPrefix(m.Target, "sm_"))
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path(".ptx"), err)
	}
	registers := map[string]int{}
	for _, k := range made.kernels {
		registers[k.name] = k.registers
	}
	for _, k := range m.Kernels {
		k.Registers = registers[k.Name]
	}
	return nil
}
