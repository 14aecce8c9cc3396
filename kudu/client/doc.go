// Package client is a client of a running Apache Kudu cluster, version 1.18.
//
//	c, err := client.Connect(ctx, []string{"master1:7051", "master2:7051", "master3:7051"}, nil)
//	t, err := c.OpenTable(ctx, "metrics")
//
// A Client finds the leading master and the tablets' leaders, follows them when they change, and
// repeats calls that a server was too busy for or that were lost. A call of this package ends at the
// deadline of its context, or after Options.Timeout without one; its error then has the last
// server's answer. All errors name the server, the call, and the table or tablet.
//
// Servers on other hosts must encrypt connections and have certificates that Options.RootCAs sign,
// unless Options.Insecure allows any. Clients are known by their user's name or by a JWT; clusters
// that demand Kerberos are not supported.
//
// A Client and its Tables are safe for concurrent use. No returned value refers to memory of the
// client.
package client
