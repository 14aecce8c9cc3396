package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/bench/process"
)

// program is the client's source and its Maven dependencies.
//
//go:embed client
var program embed.FS

// classpathFile is the file in the home that contains the class path of the client.
const classpathFile = "classpath"

// install downloads HBase with Maven, which caches it, and compiles the client. Errors name what is
// missing.
func install(home string) error {
	client, err := fs.Sub(program, "client")
	if err != nil {
		return err
	}
	sources, classes, jars := filepath.Join(home, "sources"), filepath.Join(home, "classes"), filepath.Join(home, "jars")
	if err := errors.Join(os.RemoveAll(home), os.MkdirAll(home, 0o755), os.CopyFS(sources, client)); err != nil {
		return err
	}
	maven := exec.Command("mvn", "-q", "-B", "-ntp", "dependency:build-classpath", "-Dmdep.outputFile="+jars)
	maven.Dir = sources
	if out, err := process.Output(maven); err != nil {
		return fmt.Errorf("mvn: %w: %s", err, firstLine(out)) // mvn reports errors on stdout
	}
	text, err := os.ReadFile(jars)
	if err != nil {
		return err
	}
	classpath := strings.TrimSpace(string(text))
	if _, err := process.Output(exec.Command("javac", "-nowarn", "-cp", classpath, "-d", classes, filepath.Join(sources, "Client.java"))); err != nil {
		return fmt.Errorf("javac: %w", err)
	}
	return os.WriteFile(filepath.Join(home, classpathFile), []byte(classes+string(filepath.ListSeparator)+classpath), 0o644)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
