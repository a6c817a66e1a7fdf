#!/bin/sh
cp "$(dirname "$0")"/app/* "${APP_DIR:-/app}"
