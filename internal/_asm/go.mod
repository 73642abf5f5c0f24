module github.com/warpline-ml/warpline/internal/_asm

go 1.26
