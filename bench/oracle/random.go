package main

type config struct {
	clang string
	seed  uint64
	n     int
}

func (c *config) random() ([]byte, error) { return nil, nil }
func (c *config) golden() error           { return nil }
