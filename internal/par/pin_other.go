//go:build !linux

package par

import (
	"errors"
	"runtime"
)

func processors() ([]int, error) {
	return nil, errors.New("par: threads cannot be tied to processors on " + runtime.GOOS)
}

func stay(int) {}
