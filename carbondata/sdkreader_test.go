package carbondata

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

// sdkReader is a running program with the reader of CarbonData's SDK: tools/carbondata/check of the
// corpus, which reads one folder, in a loop of testdata/Judge.java.
type sdkReader struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader

	process *os.Process
}

// readerMost bounds the time of one answer. CarbonData's reader can hang.
const readerMost = 2 * time.Minute

// newSDKReader starts the program, which ends with the test. check is the path of the tool.
func newSDKReader(t *testing.T, check string) *sdkReader {
	t.Helper()
	cmd := sdkProgram(t, check, "Judge.java")
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		must.Do(t, cmd.Wait())
	})
	return &sdkReader{t, in, bufio.NewReaderSize(out, 1<<20), cmd.Process}
}

// sdkProgram returns a command that runs a program of testdata with the SDK, which the tool check
// brings along.
func sdkProgram(t *testing.T, check, source string, arguments ...string) *exec.Cmd {
	t.Helper()
	// builds it, if necessary
	if out, err := exec.Command(check).CombinedOutput(); !strings.Contains(string(out), "usage") {
		t.Fatalf("%s: %v: %s", check, err, out)
	}
	cache := must.Get(os.UserCacheDir())(t)
	built, err := filepath.Glob(filepath.Join(cache, "oribi-carbondata", "*", "done"))
	if err != nil || len(built) == 0 {
		t.Fatalf("no build of %s in %s: %v", check, cache, err)
	}
	newest := filepath.Dir(slices.MaxFunc(built, func(a, b string) int {
		return cmp.Compare(changed(t, a), changed(t, b))
	}))
	args := []string{"-Xmx2g", "-XX:+UseSerialGC", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8"}
	for _, opened := range []string{"java.nio", "java.util", "sun.nio.ch", "jdk.internal.ref"} {
		args = append(args, "--add-opens", "java.base/"+opened+"=ALL-UNNAMED")
	}
	jars := filepath.Join(newest, "check.jar") + string(filepath.ListSeparator) + filepath.Join(newest, "lib", "*")
	return exec.Command("java", append(append(args, "-cp", jars, filepath.Join("testdata", source)), arguments...)...)
}

// changed returns when a file was changed.
func changed(t *testing.T, name string) int64 {
	t.Helper()
	info := must.Get(os.Stat(name))(t)
	return info.ModTime().UnixNano()
}

// ask runs the tool with arguments, and returns the lines of its answer. refused is the reason if
// it does not read the folder.
func (j *sdkReader) ask(args ...string) (lines []string, refused string) {
	j.t.Helper()
	timer := time.AfterFunc(readerMost, func() { j.process.Kill() })
	defer timer.Stop()
	must.Get(io.WriteString(j.in, strings.Join(args, "\t")+"\n"))(j.t)
	for {
		line, err := j.out.ReadString('\n')
		must.Do(j.t, err, args)
		line = strings.TrimSuffix(line, "\n")
		// Rows and columns begin with brackets.
		if end, ok := strings.CutPrefix(line, "exit "); ok {
			status, message, _ := strings.Cut(end, " ")
			if status != "0" {
				return lines, fmt.Sprintf("exit status %s: %s", status, message)
			}
			return lines, ""
		}
		lines = append(lines, line)
	}
}
