package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/process"
)

// program is the client's source.
//
//go:embed client/*.java
var program embed.FS

// A home contains the compiled client and a file of paths, so that later processes find Kudu
// without Maven.
const (
	pathsFile  = "paths" // one path per line
	classesDir = "classes"
)

// paths are the locations of Kudu's files.
type paths struct {
	servers   string // the directory of kudu, kudu-master and kudu-tserver
	classpath string // class path of the client
}

func readPaths(home string) (p paths, err error) {
	text, err := os.ReadFile(filepath.Join(home, pathsFile))
	p.servers, p.classpath, _ = strings.Cut(string(text), "\n")
	return p, err
}

// install downloads Kudu's servers and its client with the corpus's tools, which cache them, and
// compiles the program that uses the client. Errors name what is missing.
func install(corpus, home string) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("Kudu's binaries exist for linux/amd64 only, this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if corpus == "" {
		return fmt.Errorf("Kudu is downloaded by the corpus's tools, but there is no corpus: set %s to its directory",
			inputs.Variable)
	}
	var found [2]string
	for i, tool := range []string{"install", "install-client"} {
		out, err := process.Output(exec.Command(filepath.Join(corpus, "tools", "kudu", tool)))
		if err != nil {
			return fmt.Errorf("the corpus's tools/kudu/%s: %w", tool, err)
		}
		found[i] = out
	}
	sources := filepath.Join(home, "sources")
	if err := errors.Join(os.RemoveAll(home), os.MkdirAll(home, 0o755)); err != nil {
		return err
	}
	if err := os.CopyFS(sources, program); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(sources, "client", "*.java"))
	if err != nil {
		return err
	}
	classes := filepath.Join(home, classesDir)
	if _, err := process.Output(exec.Command("javac",
		append([]string{"-nowarn", "-cp", found[1], "-d", classes}, files...)...)); err != nil {
		return fmt.Errorf("javac: %w", err)
	}
	return os.WriteFile(filepath.Join(home, pathsFile), []byte(found[0]+"\n"+classes+":"+found[1]), 0o644)
}
