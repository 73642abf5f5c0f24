//go:build packed

package vet

import "github.com/warpline-ml/warpline/internal/tables"

// programs are the examples, in the folder of that name.
var programs = tables.Folder("internal/vet")
