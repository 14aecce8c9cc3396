// Package programs names the programs in examples that are written with other stores, too: in the directory
// NAME/STORE, each as a user of that store would write it. They do the same as the examples, with the same
// goroutines and the same durability, and print the same. The limiter is not synced, the others are.
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Names are the names of the programs.
var Names = []string{"shop", "queue", "sessions", "limiter"}

// Stores are the stores of each program, ours first.
var Stores = []string{Ours, "sqlite", "bbolt", "badger"}

// Ours is the store of the programs in examples.
const Ours = "oribi"

// Source returns the source file of a program. root is the directory of the engine's module.
func Source(root, name, store string) string {
	if store == Ours {
		return filepath.Join(root, "examples", name, "main.go")
	}
	return filepath.Join(root, "bench", "programs", name, store, "main.go")
}

// Output returns the file with what all programs of a name print.
func Output(root, name string) string { return filepath.Join(root, "examples", name, "output.txt") }

// File returns the path of a program that Build writes into dir.
func File(dir, name, store string) string {
	file := filepath.Join(dir, "program-"+name+"-"+store)
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	return file
}

// Build builds a program into dir, without cgo.
func Build(ctx context.Context, root, dir, name, store string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", File(dir, name, store), ".")
	build.Dir = filepath.Dir(Source(root, name, store))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w: %s", build.Dir, err, out)
	}
	return nil
}

// Lines returns the number of lines of a program that are neither empty nor a comment alone.
func Lines(root, name, store string) (n int, err error) {
	text, err := os.ReadFile(Source(root, name, store))
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n, err
}
