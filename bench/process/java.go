package process

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Files in the home of a program in Java.
const (
	sourcesDir    = "sources"
	classesDir    = "classes"
	classpathFile = "classpath"
)

// requests is the class that the programs in Java share.
//
//go:embed java/Requests.java
var requests embed.FS

// Home returns the directory, next to this program, for the output of InstallJava.
func Home() (string, error) {
	self, err := os.Executable()
	return self + ".files", err
}

// InstallClient downloads and compiles the program in folder client of files, to the directory that
// Home returns.
func InstallClient(files fs.FS) error {
	home, err := Home()
	if err != nil {
		return err
	}
	client, err := fs.Sub(files, "client")
	if err != nil {
		return err
	}
	return InstallJava(home, client)
}

// InstallJava compiles a program in Java: all its sources, class Requests, and the sources that its
// pom.xml unpacks. Maven downloads the program's dependencies and caches them. Errors name what is
// missing.
func InstallJava(home string, program fs.FS) error {
	sources, classes, jars := filepath.Join(home, sourcesDir),
		filepath.Join(home, classesDir), filepath.Join(home, "jars")
	if err := errors.Join(os.RemoveAll(home), os.MkdirAll(home, 0o755), os.CopyFS(sources, program),
		os.CopyFS(sources, requests)); err != nil {
		return err
	}
	maven := exec.Command("mvn", "-q", "-B", "-ntp", "generate-sources",
		"dependency:build-classpath", "-Dmdep.outputFile="+jars)
	maven.Dir = sources
	if out, err := Output(maven); err != nil {
		first, _, _ := strings.Cut(out, "\n")
		return fmt.Errorf("mvn: %w: %s", err, first) // mvn reports errors on stdout
	}
	text, err := os.ReadFile(jars)
	if err != nil {
		return err
	}
	list := string(filepath.ListSeparator)
	// sources: its resources
	classpath := strings.Join([]string{classes, sources, strings.TrimSpace(string(text))}, list)
	compiler := []string{"-nowarn", "-cp", classpath, "-d", classes}
	if err := filepath.WalkDir(sources, func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".java" {
			compiler = append(compiler, name)
		}
		return err
	}); err != nil {
		return err
	}
	if _, err := Output(exec.Command("javac", compiler...)); err != nil {
		return fmt.Errorf("javac: %w", err)
	}
	return os.WriteFile(filepath.Join(home, classpathFile), []byte(classpath), 0o644)
}

// Java returns a command that runs the class Client of the program in home, with options of the
// virtual machine.
func Java(home string, options ...string) (*exec.Cmd, error) {
	classpath, err := os.ReadFile(filepath.Join(home, classpathFile))
	if err != nil {
		return nil, err
	}
	return exec.Command("java", append(options, "-cp", string(classpath), "Client")...), nil
}

// Numbers sends a request whose answer consists of n numbers.
func (p *Program) Numbers(n int, words ...string) ([]int64, error) {
	got, err := p.Ask(nil, words...)
	if err != nil {
		return nil, err
	}
	if len(got) != n {
		return nil, fmt.Errorf("%s: an answer of %d words, want %d", words[0], len(got), n)
	}
	numbers := make([]int64, n)
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(got[i], 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", words[0], err)
		}
	}
	return numbers, nil
}
