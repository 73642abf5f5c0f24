package libcuda

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/warpline-ml/warpline/internal/dl"
)

// candidates lists the libraries to try: that of PathEnv only if it is set, else those where drivers put theirs.
func candidates() ([]string, error) {
	if path := os.Getenv(PathEnv); path != "" {
		if !filepath.IsAbs(path) {
			return nil, badPath(fmt.Sprintf("%s=%q is not an absolute path", PathEnv, path))
		}
		return []string{path}, nil
	}
	return dl.DriverPaths("libcuda.so.1", "nvcuda.dll"), nil
}
