"""Export of ONNX graphs."""
