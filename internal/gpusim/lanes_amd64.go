//go:build !purego

package gpusim

import "github.com/warpline-ml/warpline/internal/cpufeat"

var engines = map[cpufeat.Level]*engine{
	cpufeat.AVX512: {lanes512, &has512},
	cpufeat.AVX2:   {lanes256, &has256},
}
