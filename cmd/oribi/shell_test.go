package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/oribi-db/oribi/cmd/oribi/internal/cli"
	"github.com/oribi-db/oribi/internal/must"
)

// part is one command of a pipeline.
type part struct {
	text string
	args []string // of oribi, if it can run in this process; nil if sh must run text
}

// stateful are the words whose meaning extends beyond one command.
var stateful = []string{"cd", "set", "export", "for", "while", "until", "if", "case"}

// parseLine splits a command line into pipelines, and these into commands. It knows quotes, pipes,
// and semicolons. Lines that it does not know are for sh as a whole.
func parseLine(line string) (pipelines [][]part, ok bool) {
	pipelines = [][]part{nil}
	var words []string
	var word []byte
	start, inWord, plain := 0, false, true
	endWord := func() {
		if inWord {
			words = append(words, string(word))
		}
		word, inWord = nil, false
	}
	endPart := func(end int) bool {
		endWord()
		if len(words) == 0 || slices.Contains(stateful, words[0]) {
			return false
		}
		p := part{text: line[start:end]}
		if plain && words[0] == "oribi" {
			p.args = words[1:]
		}
		last := len(pipelines) - 1
		pipelines[last] = append(pipelines[last], p)
		words, start, plain = nil, end+1, true
		return true
	}
	for i := 0; i < len(line); i++ {
		switch b := line[i]; b {
		case ' ':
			endWord()
		case '\'', '"':
			quoted, _, closed := strings.Cut(line[i+1:], string(b))
			if !closed || b == '"' && strings.ContainsAny(quoted, "$`\\") {
				return nil, false
			}
			word, inWord = append(word, quoted...), true
			i += len(quoted) + 1
		case '|', ';':
			if !endPart(i) {
				return nil, false // also in "||"
			}
			if b == ';' {
				pipelines = append(pipelines, nil)
			}
		case '$', '`', '\\', '&', '(', ')', '{', '}', '\n':
			return nil, false
		case '*', '?', '[', '~', '#', '<', '>':
			plain, inWord = false, true
		default:
			word, inWord = append(word, b), true
		}
	}
	return pipelines, endPart(len(line))
}

// shell runs a command line in the current directory and returns its exit code. It runs oribi in
// this process where that makes no difference. Stdout and stderr may be the same writer.
func shell(t testing.TB, line string, out, errs io.Writer) (code int) {
	t.Helper()
	pipelines, ok := parseLine(line)
	if !ok {
		return runSh(t, line, nil, out, errs)
	}
	for _, pipeline := range pipelines {
		var in io.Reader
		for i, p := range pipeline {
			to, between := out, new(bytes.Buffer)
			if i < len(pipeline)-1 {
				to = between
			}
			if p.args != nil {
				code = runInside(t, p.args, in, to, errs)
			} else {
				code = runSh(t, p.text, in, to, errs)
			}
			in = between
		}
	}
	return code
}

// runSh runs a command line with sh.
func runSh(t testing.TB, line string, in io.Reader, out, errs io.Writer) (code int) {
	t.Helper()
	cmd := shCommand(line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	if err := cmd.Run(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode()
}

// shCommand is a command line for sh, with oribi in its path.
func shCommand(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// runInside runs oribi in this process, between pipes. A nil reader is empty.
func runInside(t testing.TB, args []string, in io.Reader, out, errs io.Writer) (code int) {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w = must.Get2(os.Pipe())(t)
		return r, w
	}
	inR, inW := pipe()
	go func() {
		if in != nil {
			io.Copy(inW, in) // fails if the command does not read everything
		}
		inW.Close()
	}()
	done := make(chan struct{}, 2)
	drain := func(to io.Writer) *os.File {
		r, w := pipe()
		go func() {
			io.Copy(to, r)
			r.Close()
			done <- struct{}{}
		}()
		return w
	}
	outW := drain(out)
	errsW, ends := outW, 1
	if errs != out {
		errsW, ends = drain(errs), 2
	}
	code = cli.Run(context.Background(), args, inR, outW, errsW)
	inR.Close()
	outW.Close()
	errsW.Close()
	for range ends {
		<-done
	}
	return code
}

// shellOnTerminal is shell with a pseudo terminal of 80 columns as its stdin, stdout, and stderr.
func shellOnTerminal(t testing.TB, line string, out *bytes.Buffer) (code int) {
	t.Helper()
	pipelines, ok := parseLine(line)
	if !ok || len(pipelines) > 1 || len(pipelines[0]) > 1 || pipelines[0][0].args == nil {
		cmd := shCommand(line)
		if err := onTerminal(out, cmd); err != nil {
			if _, exited := errors.AsType[*exec.ExitError](err); !exited {
				t.Fatal(err)
			}
		}
		return cmd.ProcessState.ExitCode()
	}
	terminal, user := must.Get2(pty.Open())(t)
	defer terminal.Close()
	must.Do(t, pty.Setsize(user, &window))
	done := make(chan struct{})
	go func() {
		readTerminal(out, terminal)
		close(done)
	}()
	code = cli.Run(context.Background(), pipelines[0][0].args, user, user, user)
	user.Close()
	<-done
	return code
}

// window is the size of the pseudo terminals.
var window = pty.Winsize{Cols: 80, Rows: 24}

// onTerminal runs a command on a pseudo terminal and appends its output to out, with plain line
// ends.
func onTerminal(out *bytes.Buffer, cmd *exec.Cmd) error {
	terminal, err := pty.StartWithSize(cmd, &window)
	if err != nil {
		return err
	}
	defer terminal.Close()
	readTerminal(out, terminal)
	return cmd.Wait()
}

// readTerminal appends what a terminal shows until its other end is closed.
func readTerminal(out *bytes.Buffer, terminal io.Reader) {
	shown, _ := io.ReadAll(terminal) // ends in an error, as reads of terminals do
	out.Write(bytes.ReplaceAll(shown, []byte("\r\n"), []byte("\n")))
}
