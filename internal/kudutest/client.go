package kudutest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// client is Kudu's Java client, in a process that reads a request per line and answers each.
type client struct {
	java *exec.Cmd
	in   io.Writer
	out  *bufio.Reader
}

// Request is a request to the client: "cmd" and its arguments.
type Request map[string]any

// Reply is an answer of the client.
type Reply struct {
	OK      bool
	Error   string
	N       int // of servers
	Tablets []struct{ Tablet string }
	TS      []uint64          // of writes
	Errors  [][3]any          // of rows that were not written: position, code, and text
	Last    uint64            // the newest timestamp that the client has seen
	Data    []json.RawMessage // rows, if they were asked for inline
}

// connect starts the client, which waits for the master.
func (c *Cluster) connect() {
	c.t.Helper()
	java := exec.Command("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-cp",
		c.classPath, "org.apache.kudu.client.Driver")
	dieWithParent(java)
	in := must.Get(java.StdinPipe())(c.t)
	out := must.Get(java.StdoutPipe())(c.t)
	must.Do(c.t, java.Start())
	c.client = &client{java: java, in: in, out: bufio.NewReader(out)}
	c.Call(Request{"cmd": "connect", "masters": c.Master})
}

func (c *client) call(request Request) (r Reply, err error) {
	line, err := json.Marshal(request)
	if err != nil {
		return r, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return r, err
	}
	answer, err := c.out.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("the client ended: %w", err)
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, err
	}
	if !r.OK {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// Call asks the client.
func (c *Cluster) Call(request Request) Reply {
	c.t.Helper()
	r, err := c.client.call(request)
	if err != nil {
		c.t.Fatalf("%v: request %v", err, request)
	}
	return r
}

// Try asks the client, and returns an error of the servers.
func (c *Cluster) Try(request Request) (Reply, error) { return c.client.call(request) }

// Await waits until all tablets of a table answer.
func (c *Cluster) Await(table string) {
	c.t.Helper()
	c.until(func() error {
		_, err := c.client.call(Request{"cmd": "scan", "table": table, "ts": now(), "timeout": 1500})
		return err
	})
}

// Create makes a table with the columns of a schema, and returns the IDs of its tablets, in order
// of their partitions. by has "hash", "range_cols" and so on.
func (c *Cluster) Create(table string, s *schema.Schema, by Request) (tablets []string) {
	c.t.Helper()
	var columns []Request
	for i := range s.Columns {
		columns = append(columns, clientColumn(&s.Columns[i], i < s.Keys))
	}
	request := Request{"cmd": "create", "name": table, "columns": columns, "range_cols": []string{}}
	for k, v := range by {
		request[k] = v
	}
	c.Call(request)
	return c.Tablets(table)
}

func clientColumn(c *schema.Column, key bool) Request {
	r := Request{"name": c.Name, "type": c.Type.String(), "key": key, "nullable": c.Nullable, "immutable": c.Immutable}
	switch {
	case c.Type.Decimal():
		r["type"], r["precision"], r["scale"] = "DECIMAL", c.Precision, c.Scale
	case c.Length > 0:
		r["length"] = c.Length
	}
	if c.ReadDefault != nil {
		plain := *c
		if !c.Type.Variable() {
			plain.Type, plain.Scale = c.Type.Physical(), 0
		}
		r["default"] = json.RawMessage(celltext.AppendJSON(nil, &plain, c.ReadDefault))
	}
	return r
}

// Tablets returns the IDs of a table's tablets, in order of their partitions.
func (c *Cluster) Tablets(table string) (tablets []string) {
	c.t.Helper()
	for _, t := range c.Call(Request{"cmd": "info", "name": table}).Tablets {
		tablets = append(tablets, t.Tablet)
	}
	return tablets
}

// Ask adds to a case what the servers answer for a table: a scan at each time, and a diff between
// each two that follow each other.
func (c *Cluster) Ask(to *Case, table string, times ...uint64) {
	c.t.Helper()
	for i, ts := range times {
		c.AskScan(to, table, ts)
		if i > 0 {
			c.AskDiff(to, table, times[i-1], ts)
		}
	}
}

// AskScan adds to a case what the servers answer for a table at a time.
func (c *Cluster) AskScan(to *Case, table string, ts uint64) {
	c.t.Helper()
	c.ask(to, Answer{Kind: "scan", Table: table, Label: fmt.Sprint(ts), TS: ts}, Request{"ts": ts})
}

// AskDiff adds to a case what the servers answer for the changes of a table between two times.
func (c *Cluster) AskDiff(to *Case, table string, from, until uint64) {
	c.t.Helper()
	c.ask(to, Answer{Kind: "diff", Table: table, Label: fmt.Sprintf("%d to %d", from, until), Start: from, End: until},
		Request{"start": from, "ts": until})
}

func (c *Cluster) ask(to *Case, a Answer, request Request) {
	c.t.Helper()
	a.File = fmt.Sprintf("answer%d.jsonl", len(to.Answers))
	request["cmd"], request["table"], request["out"] = "scan", a.Table, filepath.Join(to.Dir, a.File)
	c.Call(request)
	to.Answers = append(to.Answers, a)
}

// EndClient ends the client, and so a call of Try that waits for servers.
func (c *Cluster) EndClient() { stop(c.client.java) }

// now is the present as a timestamp.
func now() uint64 { return uint64(time.Now().UnixMicro()) << 12 }

// Rows returns the rows of a table, as of now.
func (c *Cluster) Rows(table string) (rows [][]json.RawMessage) {
	c.t.Helper()
	for _, line := range c.Call(Request{"cmd": "scan", "table": table, "ts": now(), "inline": true}).Data {
		var row []json.RawMessage
		must.Do(c.t, json.Unmarshal(line, &row))
		rows = append(rows, row)
	}
	return rows
}

// Write writes rows: each operation is a kind, such as "insert", and values by column, as the
// corpus prints them. It returns the codes of rows that were not written, by position, and the time
// just after the newest write.
func (c *Cluster) Write(table string, ops [][2]any) (failed map[int]string, ts uint64) {
	c.t.Helper()
	r := c.Call(Request{"cmd": "write", "table": table, "ops": ops})
	failed = map[int]string{}
	for _, e := range r.Errors {
		failed[int(e[0].(float64))] = strings.TrimSpace(e[1].(string))
	}
	return failed, r.Last + 1
}
