package examples

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeProgram keeps the program in the README the one that is compiled and run.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("digits/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(string(program), "\npackage main\n")
	if !ok {
		t.Fatal("digits/main.go has no package clause")
	}
	if !strings.Contains(string(readme), "```go\npackage main\n"+body+"```\n") {
		t.Error("README.md does not show examples/digits/main.go as it is")
	}
}
