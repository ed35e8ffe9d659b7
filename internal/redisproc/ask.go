package redisproc

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
)

// ping asks whether the server answers. One that wants a password first does.
func ping(ctx context.Context, addr string) error {
	answer, err := ask(ctx, addr, "PING")
	if err != nil || answer == "+PONG" || strings.HasPrefix(answer, "-NOAUTH") {
		return err
	}
	return fmt.Errorf("PING was answered %q", answer)
}

// save makes the server write all it holds to its directory.
func save(ctx context.Context, addr string) error {
	answer, err := ask(ctx, addr, "SAVE")
	if err != nil || answer == "+OK" {
		return err
	}
	return fmt.Errorf("SAVE was answered %q", answer)
}

// ask sends one command that has a one-line answer, over a connection of its
// own, and returns that line.
func ask(ctx context.Context, addr, command string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Closing is what ends a read that nobody answers.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", orContext(ctx, err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", orContext(ctx, err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// orContext is the context's error if that is why err came, else err.
func orContext(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
