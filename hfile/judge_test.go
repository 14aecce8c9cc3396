package hfile

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// judge is a running program with the readers of HBase and Hudi.
type judge struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
	dir string
}

// newJudge starts the program, which ends with the test.
func newJudge(t *testing.T, program string) *judge {
	cmd := exec.Command(program, "--stdin")
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		must.Do(t, cmd.Wait(), program)
	})
	return &judge{t, in, bufio.NewReaderSize(out, 1<<20), t.TempDir()}
}

// write writes a file for the program and returns its name.
func (j *judge) write(name string, content []byte) string {
	j.t.Helper()
	name = filepath.Join(j.dir, name)
	must.Do(j.t, os.WriteFile(name, content, 0o600))
	return name
}

// ask runs the program with arguments, calls line for each line of its answer, and returns its exit
// status, with the reason if that is not 0.
func (j *judge) ask(line func(text []byte), args ...string) (exit int, message string) {
	j.t.Helper()
	question, err := json.Marshal(args)
	if err == nil {
		_, err = j.in.Write(append(question, '\n'))
	}
	must.Do(j.t, err)
	// Only the last line begins with "exit".
	for {
		text, err := j.out.ReadBytes('\n')
		must.Do(j.t, err, question)
		var end struct {
			Exit    *int    `json:"exit"`
			Message *string `json:"message"`
		}
		if len(text) > 7 && string(text[:7]) == `{"exit"` {
			must.Do(j.t, json.Unmarshal(text, &end), text)
			if end.Message != nil {
				message = *end.Message
			}
			return *end.Exit, message
		}
		line(text)
	}
}
